// SPDX-License-Identifier: Apache-2.0
// Recognizes files of weir and of other programs, for messages about a file of
// another kind than a command needs.
#ifndef WEIR_CLI_WEIR_FILE_KIND_H_
#define WEIR_CLI_WEIR_FILE_KIND_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weir::cli {

struct FileKind {
  enum class Type {
    kUnknown,  // does not exist, or may be a scenario
    kFolder,
    kJson,
    kOther,
  };
  Type type = Type::kUnknown;
  // Names the kind of a kOther file: "a model", "an HTML page".
  std::string text;
};

// Reads the beginning of the file; for textproto, all of it.
FileKind KindOfFile(const std::string& path);

// Returns what JSON or CSV text that a command of weir prints is: "the JSON
// output of weir simulate"; "" for any other text, such as schedules.
std::string DescribeOutput(const std::string& text);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_FILE_KIND_H_
