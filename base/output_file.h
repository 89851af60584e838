// SPDX-License-Identifier: Apache-2.0
// Writes the files that a user requested. Replaces only files that weir wrote,
// unless forced.
#ifndef WEIR_BASE_OUTPUT_FILE_H_
#define WEIR_BASE_OUTPUT_FILE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir {

// Marks a file as written by weir. Every format that has room for it contains
// this text within its first kMarkBytes bytes, or a PDF its last: textproto,
// scripts, SVG and PDF in a comment; JSON, results and traces in a field; PNG
// in a text chunk.
inline constexpr absl::string_view kOutputMark =
    "Written by weir, which may replace this file.";
inline constexpr size_t kMarkBytes = 256;

// The application_id of an SQLite database: "weir" in ASCII.
inline constexpr int kSqliteApplicationId = 0x77656972;

// Returns the text preceded by the comment "# Written by weir, ...\n".
std::string MarkText(absl::string_view text);
// Adds the mark as the first member of a JSON object, which must not be empty.
std::string MarkJson(absl::string_view object);
// Adds the mark as a comment after the XML declaration.
std::string MarkSvg(absl::string_view svg);
// Adds the mark as a comment at the end, where it moves no byte to which the
// file's table of offsets refers.
std::string MarkPdf(absl::string_view pdf);
// Adds the mark as a text chunk after the header. Requires: it is a PNG.
std::string MarkPng(absl::string_view png);

// Conditions under which an output file may be replaced.
struct ReplaceOptions {
  bool force = false;  // --force: replace any file
  // Recognizes the first line of a format without room for the mark, such as
  // the header of a CSV table.
  std::function<bool(absl::string_view first_line)> is_own_line;
  // A file with the mark that is written together with this one.
  std::string companion;
};

// Returns true if WriteOutput may replace the file at `path`: there is none, it
// is empty, a device or a pipe, or weir wrote it.
bool IsReplaceable(const std::string& path, const ReplaceOptions& options);

// Returns InvalidArgument if WriteOutput is already known to fail (see
// CheckWritable and IsReplaceable). Call it before long work. An empty path
// means no file and is accepted.
absl::Status CheckOutput(const std::string& path,
                         const ReplaceOptions& options);

// A file that a command is going to write.
struct OutputFile {
  std::string option;  // the path's option, for messages: "--out"
  std::string path;    // empty: no file
  ReplaceOptions replace;
};

// Checks every file with CheckOutput, and that no two paths lead to the same
// file, because the second output would replace the first. Call it with all
// files of a command. Returns InvalidArgument with the options or the path.
absl::Status CheckOutputs(const std::vector<OutputFile>& files);

// Writes a file like WriteFile, but does not replace a file that weir did not
// write. A file with the same contents is not an error, even if weir did not
// write it. Returns InvalidArgument if the file may not be replaced or cannot
// be written.
absl::Status WriteOutput(const std::string& path, absl::string_view contents,
                         const ReplaceOptions& options);

}  // namespace weir

#endif  // WEIR_BASE_OUTPUT_FILE_H_
