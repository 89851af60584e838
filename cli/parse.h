// SPDX-License-Identifier: Apache-2.0
// Turns arguments into a command and its flags. The only file that knows CLI11.
#ifndef WEIR_CLI_PARSE_H_
#define WEIR_CLI_PARSE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/options.h"

namespace weir {

struct CommandLine {
  Command* command = nullptr;  // null: print `text` instead
  Flags flags;
  std::string text;  // help or version
};

// InvalidArgument names every bad flag at once, with the nearest good one.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

// Sets what the words behind a command say. InvalidArgument names every bad one
// at once, with the nearest good one; `where` comes first: "weir simulate".
absl::Status ParseOptions(absl::string_view where, const Options& options,
                          std::vector<std::string> words);

// Is --help or -h among them?
bool AsksForHelp(const std::vector<std::string>& words);

// What the arguments say about colour, for the message that they are no command
// line.
OutputFlags::Color ColorOf(int argc, const char* const* argv);

}  // namespace weir

#endif  // WEIR_CLI_PARSE_H_
