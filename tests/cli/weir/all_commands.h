// SPDX-License-Identifier: Apache-2.0
// The commands of weir, for tests of all of them.
#ifndef WEIR_TESTS_CLI_WEIR_ALL_COMMANDS_H_
#define WEIR_TESTS_CLI_WEIR_ALL_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/options/program.h"

namespace weir::cli {

// Returns the commands of a program or group, and those of its groups instead
// of the groups.
inline std::vector<CLI::App*> AllCommands(CLI::App* app) {
  std::vector<CLI::App*> commands;
  for (CLI::App* command :
       app->get_subcommands([](CLI::App*) { return true; })) {
    const std::vector<CLI::App*> members = AllCommands(command);
    commands.insert(commands.end(), members.begin(), members.end());
    if (members.empty()) commands.push_back(command);
  }
  return commands;
}

// Returns "schedule show".
inline std::string NameOf(const CLI::App& command) {
  const std::string name = FullName(command);
  return name.substr(name.find(' ') + 1);
}

// Returns the examples of the help without the program's name.
inline std::vector<std::string> ExamplesOf(const CLI::App& command) {
  std::vector<std::string> examples;
  const std::string footer = command.get_footer();
  for (absl::string_view line : absl::StrSplit(footer, '\n')) {
    if (absl::ConsumePrefix(&line, "  weir ")) examples.emplace_back(line);
  }
  return examples;
}

// Returns false for a switch, such as --force.
inline bool TakesValue(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

}  // namespace weir::cli

#endif  // WEIR_TESTS_CLI_WEIR_ALL_COMMANDS_H_
