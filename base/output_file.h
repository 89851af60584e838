// SPDX-License-Identifier: Apache-2.0
// Writes the files that a user asked for. Never replaces a file that weir did
// not write.
#ifndef WEIR_BASE_OUTPUT_FILE_H_
#define WEIR_BASE_OUTPUT_FILE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir {

// Marks a file as written by weir. Every format that has room for it holds this
// text among its first kMarkBytes bytes: textproto and scripts in a comment,
// JSON, results and traces in a field, SVG in a comment.
inline constexpr absl::string_view kOutputMark =
    "Written by weir, which may replace this file.";
inline constexpr size_t kMarkBytes = 256;

// The application_id of an SQLite database: "weir" in ASCII.
inline constexpr int kSqliteApplicationId = 0x77656972;

// Returns the text behind the comment "# Written by weir, ...\n".
std::string MarkText(absl::string_view text);
// Adds the mark as the first member of a JSON object, which must not be empty.
std::string MarkJson(absl::string_view object);
// Adds the mark as a comment behind the XML declaration.
std::string MarkSvg(absl::string_view svg);

// Says whether this process may replace an output file.
struct ReplaceOptions {
  bool force = false;  // --force: any file
  // Recognizes the first line of a format without room for the mark, such as
  // the header of a CSV table.
  std::function<bool(absl::string_view first_line)> is_own_line;
  // A file that is written together with this one and has the mark.
  std::string companion;
};

// Returns whether WriteOutput may replace what is at `path`: nothing, an empty
// file, a device or a pipe, or a file that weir wrote.
bool IsReplaceable(const std::string& path, const ReplaceOptions& options);

// Returns InvalidArgument if WriteOutput would fail, as far as that is known
// before: see CheckWritable, and IsReplaceable. Call it before long work.
// Accepts an empty path, which stands for no file.
absl::Status CheckOutput(const std::string& path,
                         const ReplaceOptions& options);

// A file that a command is going to write.
struct OutputFile {
  std::string option;  // that names it, for messages: "--out"
  std::string path;    // empty: none
  ReplaceOptions replace;
};

// Checks every file with CheckOutput, and that no two paths lead to the same
// file: the second output would replace the first. Call it with all files of a
// command.
absl::Status CheckOutputs(const std::vector<OutputFile>& files);

// Writes a file like WriteFile, except over a file that weir did not write. A
// file with the same contents is no error, whoever wrote it.
absl::Status WriteOutput(const std::string& path, absl::string_view contents,
                         const ReplaceOptions& options);

}  // namespace weir

#endif  // WEIR_BASE_OUTPUT_FILE_H_
