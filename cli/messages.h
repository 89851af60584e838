// SPDX-License-Identifier: Apache-2.0
// Messages on standard error, and the one way in which a result goes to
// standard output. Control characters in any text, from names and file names,
// are escaped: they never reach the terminal.
#ifndef WEIR_CLI_MESSAGES_H_
#define WEIR_CLI_MESSAGES_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/exit_code.h"
#include "cli/flags.h"

namespace weir {

// Prints every line as "error: <line>" and returns the exit code.
ExitCode PrintError(const absl::Status& status, const OutputFlags& output);

// Prints every line as "error: <line>", for errors that a command gives an exit
// code of its own.
void PrintErrorMessage(absl::string_view message, const OutputFlags& output);

void PrintWarning(absl::string_view text, const OutputFlags& output);

// Prints a line, unless --quiet.
void PrintNote(absl::string_view text, const OutputFlags& output);

// Writes the result, ended by a newline. InvalidArgument when standard output
// does not take it.
absl::Status PrintResult(absl::string_view result);

// Returns whether standard error is a terminal that understands control
// sequences: not TERM=dumb.
bool IsStderrTerminal();

// A status line that is written over; only where somebody sees it.
class ProgressLine {
 public:
  explicit ProgressLine(const OutputFlags& output);
  ~ProgressLine();

  // Whether Show() shows anything.
  bool enabled() const { return enabled_; }

  // Shows "<what> 57 %, 1m12s": done from 0 to 1, and the time since this was
  // made. At most ten times a second where the percentage stays.
  void Show(absl::string_view what, double done);
  // Without a percentage, where nobody knows it: "<what> 1m12s".
  void Show(absl::string_view what);
  void Clear();

 private:
  void Print(absl::string_view what, int percent);

  bool enabled_;
  bool is_shown_ = false;
  int percent_ = -1;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point shown_;
};

// A status line for work that calls nobody back: shows what is done and for how
// long, once a second, from a thread of its own.
class ElapsedLine {
 public:
  ElapsedLine(const OutputFlags& output, std::string what);
  ~ElapsedLine();
  ElapsedLine(const ElapsedLine&) = delete;
  ElapsedLine& operator=(const ElapsedLine&) = delete;

 private:
  ProgressLine line_;
  std::string what_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_ended_ = false;
  std::thread thread_;
};

}  // namespace weir

#endif  // WEIR_CLI_MESSAGES_H_
