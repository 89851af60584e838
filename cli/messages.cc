// SPDX-License-Identifier: Apache-2.0
#include "cli/messages.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text.h"

namespace weir {
namespace {

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool IsDumb() {
  const char* terminal = std::getenv("TERM");
  return terminal == nullptr || std::strcmp(terminal, "dumb") == 0;
}

bool UseColor(const OutputFlags& output) {
  if (output.color != OutputFlags::Color::kAuto) {
    return output.color == OutputFlags::Color::kAlways;
  }
  if (IsSet("NO_COLOR")) return false;
  return IsSet("CLICOLOR_FORCE") || (isatty(STDERR_FILENO) && !IsDumb());
}

void PrintTagged(absl::string_view tag, absl::string_view color,
                 absl::string_view text, const OutputFlags& output) {
  const bool colored = UseColor(output);
  for (absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    const std::string message =
        absl::StrCat(colored ? color : "", tag, colored ? "\033[0m" : "", " ",
                     EscapeLine(line), "\n");
    std::fputs(message.c_str(), stderr);
  }
}

}  // namespace

ExitCode PrintError(const absl::Status& status, const OutputFlags& output) {
  const ExitCode code = ExitCodeOf(status);
  std::string text(status.message());
  if (text.empty()) text = status.ToString();
  if (code == kExitInternal) {
    absl::StrAppend(&text, "\nthis is a bug of weir, please report it");
  }
  PrintTagged("error:", "\033[1;31m", text, output);
  return code;
}

void PrintWarning(absl::string_view text, const OutputFlags& output) {
  PrintTagged("warning:", "\033[1;33m", text, output);
}

void PrintNote(absl::string_view text, const OutputFlags& output) {
  if (!output.quiet) std::fprintf(stderr, "%s\n", EscapeLine(text).c_str());
}

absl::Status PrintResult(absl::string_view result) {
  const std::string text = EscapeControls(result);
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  const bool ended = text.empty() || text.back() == '\n';
  if (written == text.size() && (ended || std::fputc('\n', stdout) != EOF) &&
      std::fflush(stdout) == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "standard output: cannot be written: ", std::strerror(errno)));
}

ProgressLine::ProgressLine(const OutputFlags& output)
    : enabled_(!output.quiet && isatty(STDERR_FILENO) && !IsDumb() &&
               !IsSet("CI")) {}

ProgressLine::~ProgressLine() { Clear(); }

void ProgressLine::Show(absl::string_view what, double done) {
  const int percent = static_cast<int>(100 * done);
  const auto now = std::chrono::steady_clock::now();
  if (!enabled_ ||
      (percent == percent_ && now - shown_ < std::chrono::milliseconds(100))) {
    return;
  }
  percent_ = percent;
  shown_ = now;
  std::fprintf(stderr, "\r%s %d %%\033[K", EscapeLine(what).c_str(), percent);
}

void ProgressLine::Clear() {
  if (enabled_ && percent_ >= 0) std::fputs("\r\033[K", stderr);
  percent_ = -1;
}

}  // namespace weir
