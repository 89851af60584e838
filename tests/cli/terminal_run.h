// SPDX-License-Identifier: Apache-2.0
// Runs a program as on a terminal, to see its progress and to send it signals.
#ifndef WEIR_TESTS_CLI_TERMINAL_RUN_H_
#define WEIR_TESTS_CLI_TERMINAL_RUN_H_

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace weir {

class TerminalRun {
 public:
  // Starts "<program> <arguments>" in the test's folder. Standard error is a
  // terminal of 80 columns; standard output is a file.
  TerminalRun(absl::string_view program, absl::string_view arguments);
  ~TerminalRun();  // kills all that it started
  TerminalRun(const TerminalRun&) = delete;
  TerminalRun& operator=(const TerminalRun&) = delete;

  // Reads until the terminal has shown `text`. False: the program ended before,
  // or two minutes passed.
  bool WaitFor(absl::string_view text);
  // The program alone, or its process group, as timeout(1), Slurm and Ctrl-C.
  void Signal(int signal) const;
  void SignalGroup(int signal) const;
  // Closes the terminal, as a lost connection does.
  void HangUp();
  // Waits for its end. Exit code; 128 + n: signal n ended it; 124: it hung.
  int Wait();
  // Whether a process that it started is left.
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

}  // namespace weir

#endif  // WEIR_TESTS_CLI_TERMINAL_RUN_H_
