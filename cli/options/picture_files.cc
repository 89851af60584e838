// SPDX-License-Identifier: Apache-2.0
#include "cli/options/picture_files.h"

#include <csignal>
#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/child_program.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"

namespace weir::cli {
namespace {

constexpr double kConversionSeconds = 600;
// Pixels per inch of a PNG, as journals ask for.
constexpr char kPixelsPerInch[] = "300";

// Returns the first line that is not blank, as ": LINE"; empty if there is
// none.
std::string FirstLine(const std::string& text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) return ": " + Shortened(line, 200);
  }
  return "";
}

absl::Status ConversionFailed(absl::string_view path, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat(EscapeLine(path), ": ",
                                             kPictureConverter, " ", why,
                                             "; a name ending in .svg needs no "
                                             "other program"));
}

absl::StatusOr<std::string> Convert(const std::string& path,
                                    const std::string& svg,
                                    const std::string& format) {
  ASSIGN_OR_RETURN(const ScratchFile file, ScratchFile::Make(svg));
  ASSIGN_OR_RETURN(const ScratchFile picture, ScratchFile::Make());
  ASSIGN_OR_RETURN(const ScratchFile errors, ScratchFile::Make());
  // The time in a PDF is this one, so that equal pictures have equal bytes.
  setenv("SOURCE_DATE_EPOCH", "0", /*overwrite=*/0);
  ASSIGN_OR_RETURN(
      const ChildEnd end,
      RunChildProgram(
          {kPictureConverter, "--unlimited", "--format", format, "--dpi-x",
           kPixelsPerInch, "--dpi-y", kPixelsPerInch, file.path()},
          picture.path(), kConversionSeconds, errors.path()));
  if (end.was_killed) {
    return ConversionFailed(
        path, absl::StrCat("took more than ", kConversionSeconds, " s"));
  }
  if (end.exit_code == 128 + SIGXFSZ) {
    return ConversionFailed(
        path,
        "was killed: the picture exceeds the limit on file sizes (ulimit -f)");
  }
  ASSIGN_OR_RETURN(const std::string said, ReadFile(errors.path()));
  if (end.exit_code != 0) {
    return ConversionFailed(path, absl::StrCat("failed with exit code ",
                                               end.exit_code, FirstLine(said)));
  }
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(picture.path()));
  const absl::string_view magic = format == "pdf" ? "%PDF-" : "\x89PNG\r\n";
  if (!absl::StartsWith(bytes, magic)) {
    return ConversionFailed(
        path, absl::StrCat("wrote ", bytes.size(), " bytes that are no ",
                           format, FirstLine(said)));
  }
  return bytes;
}

}  // namespace

absl::Status CheckPicturePath(absl::string_view option,
                              const std::string& path) {
  if (path.empty() || absl::EndsWith(path, ".svg")) return absl::OkStatus();
  if (absl::EndsWith(path, ".pdf") || absl::EndsWith(path, ".png")) {
    if (!FindProgram(kPictureConverter).empty()) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        option, ": ", kPictureConverter,
        " is not found, which makes PDF and PNG: install it (Debian: "
        "librsvg2-bin), or choose a name ending in .svg"));
  }
  Problems problems("command line");
  problems.Add(option, absl::StrCat("is ", path,
                                    ", expected a name ending in .svg, .pdf "
                                    "or .png"));
  return problems.ToStatus();
}

absl::StatusOr<std::string> PictureBytes(const std::string& path,
                                         const results::Drawing& drawing) {
  const std::string svg = results::SvgOf(drawing);
  if (absl::EndsWith(path, ".svg")) return MarkSvg(svg);
  if (absl::EndsWith(path, ".pdf")) {
    ASSIGN_OR_RETURN(const std::string pdf, Convert(path, svg, "pdf"));
    return MarkPdf(pdf);
  }
  ASSIGN_OR_RETURN(const std::string png, Convert(path, svg, "png"));
  return MarkPng(png);
}

absl::Status WritePicture(const std::string& path,
                          const results::Drawing& drawing,
                          const OutputFlags& output) {
  ASSIGN_OR_RETURN(const std::string bytes, PictureBytes(path, drawing));
  RETURN_IF_ERROR(WriteOutput(path, bytes, ReplaceOf(output)));
  PrintNote(absl::StrCat("wrote ", path), output);
  return absl::OkStatus();
}

}  // namespace weir::cli
