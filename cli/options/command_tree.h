// SPDX-License-Identifier: Apache-2.0
// The commands of a program, for pages and scripts that list all of them.
#ifndef WEIR_CLI_OPTIONS_COMMAND_TREE_H_
#define WEIR_CLI_OPTIONS_COMMAND_TREE_H_

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace weir::cli {

// Returns the commands of a program or group, in order of the help, and those
// of its groups instead of the groups. Returns an empty list for a command.
std::vector<const CLI::App*> AllCommands(const CLI::App& app);

// Returns "schedule show": the full name without the program's.
std::string NameInProgram(const CLI::App& command);

// Returns the options with dashes that a command takes, including those that
// belong to all commands of the program.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& command);

std::vector<const CLI::Option*> PositionalsOf(const CLI::App& command);

// Returns "--pp", "--pipeline-model-parallel-size", the preferred name first;
// "-o" comes before "--output".
std::vector<std::string> NamesOf(const CLI::Option& option);

// Returns the words that an option accepts, if its placeholder lists them
// ("gpipe|1f1b"), else an empty list.
std::vector<std::string> ChoicesOf(const CLI::Option& option);

// Returns false for a switch, such as --force.
bool TakesValue(const CLI::Option& option);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_COMMAND_TREE_H_
