// SPDX-License-Identifier: Apache-2.0
// Messages on standard error (as JSON with OutputFlags::json_messages), and the
// only function that writes a result to standard output. Control characters in
// any text, such as names and file names, are escaped and never reach the
// terminal.
#ifndef WEIR_CLI_OPTIONS_MESSAGES_H_
#define WEIR_CLI_OPTIONS_MESSAGES_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/exit_code.h"
#include "base/text_table.h"
#include "cli/options/flags.h"

namespace weir::cli {

// Collects what functions of this header print on this thread, instead of
// printing it, while it exists. At most one per thread.
class CapturedOutput {
 public:
  CapturedOutput();
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  std::string out;  // of PrintResult
  std::string err;  // everything else
};

// Returns the layout of tables on standard output: the width of its terminal,
// or 80 columns if standard output is not a terminal.
TextLayout LayoutOf(const OutputFlags& output);

// Returns true if a result on standard output may be colored: as --color,
// NO_COLOR or CLICOLOR_FORCE say, otherwise on a terminal that supports it.
bool UsesColorOnStdout(const OutputFlags& output);

// Returns true if the environment (LC_ALL, LC_CTYPE or LANG) selects UTF-8.
bool IsUtf8Locale();

// Prints every line as "error: <line>" and returns the exit code.
ExitCode PrintError(const absl::Status& status, const OutputFlags& output);

// Keeps at most five lines that differ only in numbers and quoted strings, and
// appends the number of lines left out.
std::string LimitRepetitions(absl::string_view text);

// Prints every line as "error: <line>", for errors with an exit code that the
// command chooses.
void PrintErrorMessage(absl::string_view message, const OutputFlags& output);

void PrintWarning(absl::string_view text, const OutputFlags& output);

// Prints a line, unless --quiet.
void PrintNote(absl::string_view text, const OutputFlags& output);

// Writes the result, followed by a newline if it has none. Returns
// InvalidArgument if standard output cannot be written. `colored` follows it
// with its control sequences: it must contain no text from a file.
absl::Status PrintResult(absl::string_view result,
                         absl::string_view colored = "");

// Returns true if standard error is a terminal that supports control sequences
// (not TERM=dumb).
bool IsStderrTerminal();

// Receives what the status lines of this process show, also without a terminal,
// instead of standard error: the work, and the completed fraction or -1.
void SetProgressListener(
    std::function<void(absl::string_view what, double done)> listener);

// A status line that overwrites itself; only if standard error is a terminal.
class ProgressLine {
 public:
  explicit ProgressLine(const OutputFlags& output);
  ~ProgressLine();

  // Returns true if Show() prints anything.
  bool enabled() const { return enabled_; }

  // Shows "<what> 57 %, 1m12s": the completed fraction, from 0 to 1, and the
  // time since construction. At most ten times a second while the percentage
  // stays.
  void Show(absl::string_view what, double done);
  // Shows "<what> 1m12s", if the completed fraction is unknown.
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

// A status line for work without callbacks: shows what is done and for how
// long, once a second, from its own thread.
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

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_MESSAGES_H_
