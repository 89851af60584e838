// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/gnuplot.h"

#include <csignal>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/child_program.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace weir::cli {
namespace {

constexpr char kGnuplot[] = "gnuplot";
constexpr double kLimitSeconds = 600;

// Returns the first line that is not blank, as ": LINE"; empty if there is
// none.
std::string Reason(const std::string& text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) return ": " + Shortened(line, 200);
  }
  return "";
}

absl::Status Failed(absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("--plot: gnuplot ", why));
}

}  // namespace

absl::Status FindGnuplot() {
  if (!FindProgram(kGnuplot).empty()) return absl::OkStatus();
  return absl::UnavailableError(
      "gnuplot is not found: install it (Debian: gnuplot-nox), or omit --plot");
}

absl::StatusOr<std::string> DrawSvg(const std::string& script) {
  RETURN_IF_ERROR(FindGnuplot());
  ASSIGN_OR_RETURN(const ScratchFile file, ScratchFile::Make(script));
  ASSIGN_OR_RETURN(const ScratchFile picture, ScratchFile::Make());
  ASSIGN_OR_RETURN(const ScratchFile errors, ScratchFile::Make());
  ASSIGN_OR_RETURN(
      const ChildEnd end,
      RunChildProgram({kGnuplot, "--default-settings", file.path()},
                      picture.path(), kLimitSeconds, errors.path()));
  if (end.was_killed) {
    return Failed(absl::StrCat("took more than ", kLimitSeconds, " s"));
  }
  if (end.exit_code == 128 + SIGXFSZ) {
    return Failed(
        "was killed: the plot exceeds the limit on file sizes (ulimit -f)");
  }
  ASSIGN_OR_RETURN(const std::string said, ReadFile(errors.path()));
  if (end.exit_code != 0) {
    return Failed(
        absl::StrCat("failed with exit code ", end.exit_code, Reason(said)));
  }
  ASSIGN_OR_RETURN(std::string svg, ReadFile(picture.path()));
  if (!absl::StrContains(svg, "</svg>")) {
    return Failed(absl::StrCat("wrote an incomplete plot of only ", svg.size(),
                               " bytes", Reason(said)));
  }
  return svg;
}

}  // namespace weir::cli
