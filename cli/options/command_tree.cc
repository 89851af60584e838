// SPDX-License-Identifier: Apache-2.0
#include "cli/options/command_tree.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/options/add_option.h"
#include "cli/options/program.h"

namespace weir::cli {
namespace {

const CLI::App& ProgramOf(const CLI::App& command) {
  const CLI::App* program = &command;
  while (program->get_parent() != nullptr) program = program->get_parent();
  return *program;
}

bool IsHidden(const CLI::Option& option) { return option.get_group().empty(); }

}  // namespace

std::vector<const CLI::App*> AllCommands(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::vector<const CLI::App*> members = AllCommands(*command);
    commands.insert(commands.end(), members.begin(), members.end());
    if (members.empty()) commands.push_back(command);
  }
  return commands;
}

std::string NameInProgram(const CLI::App& command) {
  const std::string name = FullName(command);
  const size_t space = name.find(' ');
  return space == std::string::npos ? "" : name.substr(space + 1);
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& command) {
  const auto has_dashes = [](const CLI::Option* option) {
    return !option->get_positional() && !IsHidden(*option);
  };
  std::vector<const CLI::Option*> options = command.get_options(has_dashes);
  const CLI::App& program = ProgramOf(command);
  if (&program != &command) {
    const auto inherited = program.get_options([&](const CLI::Option* option) {
      return has_dashes(option) && option->get_group() == kOptionsOfAllCommands;
    });
    options.insert(options.end(), inherited.begin(), inherited.end());
  }
  return options;
}

std::vector<const CLI::Option*> PositionalsOf(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) {
    return option->get_positional() && !IsHidden(*option);
  });
}

std::vector<std::string> NamesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) {
    names.push_back(absl::StrCat("-", name));
  }
  for (const std::string& name : option.get_lnames()) {
    names.push_back(absl::StrCat("--", name));
  }
  return names;
}

std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string value = option.get_type_name();
  if (!absl::StrContains(value, '|')) return {};
  std::vector<std::string> choices = absl::StrSplit(value, '|');
  for (const std::string& choice : choices) {
    // "SECONDS|TFLOPS" are placeholders.
    if (choice.empty() || (choice[0] >= 'A' && choice[0] <= 'Z')) return {};
  }
  return choices;
}

bool TakesValue(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

}  // namespace weir::cli
