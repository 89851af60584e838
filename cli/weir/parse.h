// SPDX-License-Identifier: Apache-2.0
// Converts arguments to a command and its flags. Only parse.cc uses CLI11.
#ifndef WEIR_CLI_WEIR_PARSE_H_
#define WEIR_CLI_WEIR_PARSE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/options/flags.h"
#include "cli/options/options.h"
#include "cli/weir/commands.h"

namespace weir::cli {

struct CommandLine {
  Command* command = nullptr;  // null: print `text` instead
  Flags flags;
  std::string text;  // help or version
};

// Returns InvalidArgument with every bad flag and the nearest valid one.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

// Sets the options of a command from the words that follow it. Returns
// InvalidArgument with every bad word and the nearest valid one; messages begin
// with `where`: "weir simulate".
absl::Status ParseOptions(absl::string_view where, const Options& options,
                          std::vector<std::string> words);

// Returns true if the words contain --help or -h.
bool AsksForHelp(const std::vector<std::string>& words);

// Returns the color setting of the arguments, for the message that they are
// invalid.
OutputFlags::Color ColorOf(int argc, const char* const* argv);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_PARSE_H_
