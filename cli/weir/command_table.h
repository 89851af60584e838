// SPDX-License-Identifier: Apache-2.0
// Every command of weir with its help.
#ifndef WEIR_CLI_WEIR_COMMAND_TABLE_H_
#define WEIR_CLI_WEIR_COMMAND_TABLE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/options/options.h"
#include "cli/weir/commands.h"

namespace weir::cli {

struct CommandInfo {
  absl::string_view name;  // "simulate", "schedule show"
  absl::string_view summary;
  std::vector<absl::string_view> examples;  // without "weir "
  Command* run;
  Options (*options)(Flags*);
};

const std::vector<CommandInfo>& AllCommands();

// Return the help of the whole program, of the commands that begin with a word
// ("schedule"; empty if none do), and of one command.
std::string HelpText();
std::string HelpTextOfGroup(absl::string_view first_word);
std::string HelpText(const CommandInfo& command);
// Returns the help of a command of any program, such as "weir simulate".
// Examples include the program's name.
std::string HelpText(absl::string_view command, absl::string_view summary,
                     const std::vector<std::string>& examples,
                     const Options& options);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_COMMAND_TABLE_H_
