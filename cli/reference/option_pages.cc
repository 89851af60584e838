// SPDX-License-Identifier: Apache-2.0
#include "cli/reference/option_pages.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/options/add_option.h"
#include "cli/options/command_tree.h"
#include "cli/options/program.h"
#include "cli/reference/markdown.h"

namespace weir::cli {
namespace {

std::string NamesCell(const CLI::Option& option) {
  std::string names = option.get_positional()
                          ? option.get_name(/*positional=*/true)
                          : absl::StrJoin(NamesOf(option), " ");
  if (!option.get_positional() && !option.get_type_name().empty()) {
    absl::StrAppend(&names, " ", option.get_type_name());
  }
  return MarkdownCode(names);
}

std::string Row(const CLI::Option& option) {
  std::string meaning = option.get_description();
  if (option.get_required()) absl::StrAppend(&meaning, " (required)");
  return absl::StrCat("| ", NamesCell(option), " | ", MarkdownCell(meaning),
                      " | ", MarkdownCell(option.get_default_str()), " |\n");
}

std::string Table(const std::vector<const CLI::Option*>& options) {
  std::string text = "\n| option | meaning | default |\n|---|---|---|\n";
  for (const CLI::Option* option : options) {
    absl::StrAppend(&text, Row(*option));
  }
  return text;
}

std::string CommandSection(const CLI::App& command) {
  std::string text =
      absl::StrCat("\n## ", FullName(command), "\n\n",
                   MarkdownText(command.get_description()), "\n");
  if (!command.get_footer().empty()) {
    absl::StrAppend(&text, "\n```\n", command.get_footer(), "\n```\n");
  }
  const std::vector<const CLI::Option*> positionals = PositionalsOf(command);
  if (!positionals.empty()) absl::StrAppend(&text, Table(positionals));
  std::vector<std::string> groups;
  const std::vector<const CLI::Option*> options = OptionsOf(command);
  for (const CLI::Option* option : options) {
    const std::string& group = option->get_group();
    if (group != kOptionsOfAllCommands &&
        std::find(groups.begin(), groups.end(), group) == groups.end()) {
      groups.push_back(group);
    }
  }
  for (const std::string& group : groups) {
    std::vector<const CLI::Option*> members;
    std::copy_if(options.begin(), options.end(), std::back_inserter(members),
                 [&](const CLI::Option* option) {
                   return option->get_group() == group;
                 });
    absl::StrAppend(&text, "\n**", MarkdownText(group), "**\n", Table(members));
  }
  return text;
}

}  // namespace

std::string OptionPage(const CLI::App& program) {
  std::string text = absl::StrCat("# Options of ", program.get_name(), "\n\n",
                                  "All commands also accept ");
  std::vector<std::string> shared;
  for (const CLI::Option* option : OptionsOf(program)) {
    if (option->get_group() != kOptionsOfAllCommands) continue;
    shared.push_back(NamesCell(*option));
  }
  absl::StrAppend(&text, absl::StrJoin(shared, ", "), " and `--help`.\n");
  for (const CLI::App* command : AllCommands(program)) {
    absl::StrAppend(&text, CommandSection(*command));
  }
  return text;
}

}  // namespace weir::cli
