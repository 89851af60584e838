// SPDX-License-Identifier: Apache-2.0
// Figures as files: SVG, and PDF and PNG made of it by rsvg-convert
// (docs/decisions/0035-figures-are-svg.md).
#ifndef WEIR_CLI_OPTIONS_PICTURE_FILES_H_
#define WEIR_CLI_OPTIONS_PICTURE_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/options/flags.h"
#include "results/draw/drawing.h"

namespace weir::cli {

// The program that converts SVG.
inline constexpr char kPictureConverter[] = "rsvg-convert";

// Checks, before long work, that a picture can be written: returns
// InvalidArgument if the name does not end in .svg, .pdf or .png, and
// Unavailable if the program for PDF and PNG is not installed. An empty path
// means no file and is accepted.
absl::Status CheckPicturePath(absl::string_view option,
                              const std::string& path);

// Returns the bytes of the file in the format that the ending names, with
// kOutputMark. Equal drawings give equal bytes on one machine; SVG on all.
// Returns Unavailable if the conversion fails. Requires: CheckPicturePath is
// OK.
absl::StatusOr<std::string> PictureBytes(const std::string& path,
                                         const results::Drawing& drawing);

// Writes PictureBytes. Prints a note about the file. Returns the errors of
// PictureBytes and WriteOutput.
absl::Status WritePicture(const std::string& path,
                          const results::Drawing& drawing,
                          const OutputFlags& output);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_PICTURE_FILES_H_
