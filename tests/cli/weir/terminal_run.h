// SPDX-License-Identifier: Apache-2.0
// Runs a program on a terminal, to read its progress and to send it signals.
#ifndef WEIR_TESTS_CLI_WEIR_TERMINAL_RUN_H_
#define WEIR_TESTS_CLI_WEIR_TERMINAL_RUN_H_

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace weir::cli {

class TerminalRun {
 public:
  // Starts "<program> <arguments>" in the test's folder. Standard error is a
  // terminal with 80 columns; standard output is a file.
  TerminalRun(absl::string_view program, absl::string_view arguments);
  ~TerminalRun();  // kills all processes that it started
  TerminalRun(const TerminalRun&) = delete;
  TerminalRun& operator=(const TerminalRun&) = delete;

  // Reads until the terminal has shown `text`. Returns false if the program
  // ended before that or two minutes passed.
  bool WaitFor(absl::string_view text);
  // Signals the program alone, or its process group, as timeout(1), Slurm and
  // Ctrl-C do.
  void Signal(int signal) const;
  void SignalGroup(int signal) const;
  // Closes the terminal, as a lost connection does.
  void HangUp();
  // Waits for the program to end. Returns its exit code, 128 + n if signal n
  // ended it, or 124 if it hung.
  int Wait();
  // Returns true if a process that it started still runs.
  bool HasLeftProcesses() const;

  const std::string& shown() const { return shown_; }
  std::string out() const;

 private:
  bool ReadSome(int milliseconds);

  pid_t pid_ = -1;
  int terminal_ = -1;
  bool has_ended_ = false;
  std::string shown_;
};

}  // namespace weir::cli

#endif  // WEIR_TESTS_CLI_WEIR_TERMINAL_RUN_H_
