// SPDX-License-Identifier: Apache-2.0
// Turns arguments into a command and its flags. The only file that knows CLI11.
#ifndef WEIR_CLI_PARSE_H_
#define WEIR_CLI_PARSE_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/commands.h"
#include "cli/flags.h"

namespace weir {

struct CommandLine {
  Command* command = nullptr;  // null: print `text` instead
  Flags flags;
  std::string text;  // help or version
};

// InvalidArgument names every bad flag at once, with the nearest good one.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

// What the arguments say about colour, for the message that they are no command
// line.
OutputFlags::Color ColorOf(int argc, const char* const* argv);

}  // namespace weir

#endif  // WEIR_CLI_PARSE_H_
