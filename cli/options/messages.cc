// SPDX-License-Identifier: Apache-2.0
#include "cli/options/messages.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/json_text.h"
#include "base/problem_parts.h"
#include "base/text.h"

namespace weir::cli {
namespace {

std::function<void(absl::string_view what, double done)>& Listener() {
  static auto& listener =
      *new std::function<void(absl::string_view what, double done)>();
  return listener;
}

thread_local CapturedOutput* captured_output = nullptr;

void WriteMessage(const std::string& text) {
  if (captured_output != nullptr) {
    captured_output->err += text;
  } else {
    std::fputs(text.c_str(), stderr);
  }
}

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// Returns the width of a terminal, or the usual one for anything else.
int WidthOf(int descriptor) {
  winsize size = {};
  const bool known =
      captured_output == nullptr && ioctl(descriptor, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? size.ws_col : TextLayout::kUsualWidth;
}

// Returns true if the descriptor is a terminal that supports control sequences.
bool IsTerminal(int descriptor) {
  const char* terminal = std::getenv("TERM");
  return captured_output == nullptr && isatty(descriptor) == 1 &&
         terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}

bool UsesColor(const OutputFlags& output, int descriptor) {
  if (output.color != OutputFlags::Color::kAuto) {
    return output.color == OutputFlags::Color::kAlways;
  }
  if (IsSet("NO_COLOR")) return false;
  return IsSet("CLICOLOR_FORCE") || IsTerminal(descriptor);
}

nlohmann::ordered_json OrNull(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

nlohmann::ordered_json OrNull(int number) {
  return number == 0 ? nlohmann::ordered_json()
                     : nlohmann::ordered_json(number);
}

// Prints the objects that "weir schema error" describes.
void PrintJsonMessages(absl::string_view severity, absl::string_view text) {
  for (const ProblemParts& parts : SplitProblems(text)) {
    const nlohmann::ordered_json message = {
        {"severity", std::string(severity)},
        {"message", parts.message},
        {"file", OrNull(parts.file)},
        {"line", OrNull(parts.line)},
        {"column", OrNull(parts.column)},
        {"field", OrNull(parts.field)},
        {"found", OrNull(parts.found)},
        {"expected", OrNull(parts.expected)},
        {"details", parts.details}};
    WriteMessage(absl::StrCat(DumpJson(message), "\n"));
  }
}

void PrintTagged(absl::string_view severity, absl::string_view color,
                 absl::string_view text, const OutputFlags& output) {
  if (output.json_messages) return PrintJsonMessages(severity, text);
  const bool colored = UsesColor(output, STDERR_FILENO);
  for (absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    // An indented line is a detail of the line above.
    if (absl::StartsWith(line, "  ")) {
      WriteMessage(absl::StrCat(EscapeLine(line), "\n"));
      continue;
    }
    WriteMessage(absl::StrCat(colored ? color : "", severity, ":",
                              colored ? "\033[0m" : "", " ", EscapeLine(line),
                              "\n"));
  }
}

// Returns the line without what distinguishes messages of one kind: quoted
// texts and words with digits.
std::string KindOfMessage(absl::string_view line) {
  std::string kind;
  for (absl::string_view word : absl::StrSplit(line, ' ')) {
    const bool varies = std::any_of(word.begin(), word.end(), [](char c) {
      return (c >= '0' && c <= '9') || c == '"' || c == '\'';
    });
    absl::StrAppend(&kind, " ", varies ? "#" : word);
  }
  return kind;
}

}  // namespace

CapturedOutput::CapturedOutput() { captured_output = this; }
CapturedOutput::~CapturedOutput() { captured_output = nullptr; }

TextLayout LayoutOf(const OutputFlags& output) {
  constexpr int kNarrowest = 40;
  return {std::max(WidthOf(STDOUT_FILENO), kNarrowest), output.wide,
          output.columns};
}

bool UsesColorOnStdout(const OutputFlags& output) {
  return UsesColor(output, STDOUT_FILENO);
}

bool IsUtf8Locale() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!IsSet(variable)) continue;
    const std::string locale = absl::AsciiStrToLower(std::getenv(variable));
    return absl::StrContains(locale, "utf-8") ||
           absl::StrContains(locale, "utf8");
  }
  return false;
}

std::string LimitRepetitions(absl::string_view text) {
  constexpr int kMostOfAKind = 5;
  std::vector<std::string> lines;
  std::map<std::string, int> counts;
  std::map<std::string, size_t> ends;  // position after the last line shown
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string kind = KindOfMessage(line);
    if (++counts[kind] > kMostOfAKind) continue;
    lines.emplace_back(line);
    ends[kind] = lines.size() - 1;
  }
  for (const auto& [kind, count] : counts) {
    if (count <= kMostOfAKind) continue;
    absl::StrAppend(&lines[ends[kind]], "\n", count - kMostOfAKind,
                    " more like this");
  }
  return absl::StrJoin(lines, "\n");
}

ExitCode PrintError(const absl::Status& status, const OutputFlags& output) {
  const ExitCode code = ExitCodeOf(status);
  std::string text(status.message());
  if (text.empty()) text = status.ToString();
  if (code == kExitInternal) {
    absl::StrAppend(&text, "\nthis is a bug in weir, please report it");
  }
  PrintErrorMessage(text, output);
  return code;
}

void PrintErrorMessage(absl::string_view message, const OutputFlags& output) {
  PrintTagged("error", "\033[1;31m", LimitRepetitions(message), output);
}

void PrintWarning(absl::string_view text, const OutputFlags& output) {
  PrintTagged("warning", "\033[1;33m", text, output);
}

void PrintNote(absl::string_view text, const OutputFlags& output) {
  if (output.quiet) return;
  if (output.json_messages) return PrintJsonMessages("note", text);
  WriteMessage(absl::StrCat(EscapeLine(text), "\n"));
}

absl::Status PrintResult(absl::string_view result, absl::string_view colored) {
  const std::string text = absl::StrCat(EscapeControls(result), colored);
  if (captured_output != nullptr) {
    captured_output->out += text;
    return absl::OkStatus();
  }
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  const bool ended = text.empty() || text.back() == '\n';
  if (written == text.size() && (ended || std::fputc('\n', stdout) != EOF) &&
      std::fflush(stdout) == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "standard output: cannot be written: ", std::strerror(errno)));
}

bool IsStderrTerminal() { return IsTerminal(STDERR_FILENO); }

void SetProgressListener(
    std::function<void(absl::string_view what, double done)> listener) {
  Listener() = std::move(listener);
}

ProgressLine::ProgressLine(const OutputFlags& output)
    : enabled_(!output.quiet &&
               (Listener() != nullptr || (IsStderrTerminal() && !IsSet("CI")))),
      begin_(std::chrono::steady_clock::now()) {}

ProgressLine::~ProgressLine() { Clear(); }

void ProgressLine::Show(absl::string_view what, double done) {
  Print(what, static_cast<int>(100 * done));
}

void ProgressLine::Show(absl::string_view what) { Print(what, -1); }

void ProgressLine::Print(absl::string_view what, int percent) {
  const auto now = std::chrono::steady_clock::now();
  if (!enabled_ || (is_shown_ && percent == percent_ &&
                    now - shown_ < std::chrono::milliseconds(100))) {
    return;
  }
  is_shown_ = true;
  percent_ = percent;
  shown_ = now;
  if (Listener() != nullptr) {
    Listener()(what, percent < 0 ? -1 : percent / 100.0);
    return;
  }
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now - begin_).count();
  const std::string end = absl::StrCat(
      percent < 0 ? "" : absl::StrCat(" ", percent, " %"),
      seconds < 1 ? ""
                  : absl::StrCat(percent < 0 ? " " : ", ",
                                 absl::FormatDuration(absl::Seconds(seconds))));
  // A line that wraps cannot be overwritten.
  const size_t columns =
      std::max<size_t>(WidthOf(STDERR_FILENO), end.size() + 1);
  const std::string line = EscapeLine(what);
  std::fputs(absl::StrCat("\r", line.substr(0, columns - end.size() - 1), end,
                          "\033[K")
                 .c_str(),
             stderr);
}

void ProgressLine::Clear() {
  if (is_shown_ && Listener() == nullptr) std::fputs("\r\033[K", stderr);
  is_shown_ = false;
  percent_ = -1;
}

ElapsedLine::ElapsedLine(const OutputFlags& output, std::string what)
    : line_(output), what_(std::move(what)) {
  if (!line_.enabled()) return;
  thread_ = std::thread([this] {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!ended_.wait_for(lock, std::chrono::seconds(1),
                            [this] { return is_ended_; })) {
      line_.Show(what_);
    }
  });
}

ElapsedLine::~ElapsedLine() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_ended_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

}  // namespace weir::cli
