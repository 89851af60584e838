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

std::vector<const CLI::Option*> OptionsOfGroup(const CLI::App& app,
                                               const std::string& group) {
  std::vector<const CLI::Option*> options = OptionsOf(app);
  options.erase(std::remove_if(options.begin(), options.end(),
                               [&](const CLI::Option* option) {
                                 return option->get_group() != group;
                               }),
                options.end());
  return options;
}

class OptionPageWriter {
 public:
  explicit OptionPageWriter(const OptionExamples& examples)
      : examples_(examples) {}

  std::string Table(const std::vector<const CLI::Option*>& options) const {
    std::string text =
        "\n| option | meaning | default | example |\n|---|---|---|---|\n";
    for (const CLI::Option* option : options) {
      absl::StrAppend(&text, Row(*option));
    }
    return text;
  }

  // The program's section also has the options of all commands.
  std::string Section(const CLI::App& app) const {
    std::string text = absl::StrCat("\n## ", FullName(app), "\n\n",
                                    MarkdownText(app.get_description()), "\n");
    if (!app.get_footer().empty()) {
      absl::StrAppend(&text, "\n```\n", app.get_footer(), "\n```\n");
    }
    const std::vector<const CLI::Option*> positionals = PositionalsOf(app);
    if (!positionals.empty()) absl::StrAppend(&text, Table(positionals));
    const bool is_command = app.get_parent() != nullptr;
    std::vector<std::string> groups;
    for (const CLI::Option* option : OptionsOf(app)) {
      const std::string& group = option->get_group();
      if (!(is_command && group == kOptionsOfAllCommands) &&
          std::find(groups.begin(), groups.end(), group) == groups.end()) {
        groups.push_back(group);
      }
    }
    for (const std::string& group : groups) {
      absl::StrAppend(&text, "\n**", MarkdownText(group), "**\n",
                      Table(OptionsOfGroup(app, group)));
    }
    return text;
  }

 private:
  std::string Row(const CLI::Option& option) const {
    std::string meaning = option.get_description();
    if (option.get_required()) absl::StrAppend(&meaning, " (required)");
    const auto example = examples_.find(&option);
    return absl::StrCat(
        "| ", NamesCell(option), " | ", MarkdownCell(meaning), " | ",
        MarkdownCell(option.get_default_str()), " | ",
        MarkdownCode(example == examples_.end() ? "" : example->second),
        " |\n");
  }

  const OptionExamples& examples_;
};

}  // namespace

std::string OptionPage(const CLI::App& program,
                       const OptionExamples& examples) {
  const OptionPageWriter writer(examples);
  std::string text = absl::StrCat(
      "# Options of ", program.get_name(),
      "\n\nAll commands also have `--help` (`-h`).\n", writer.Section(program));
  for (const CLI::App* command : AllCommands(program)) {
    absl::StrAppend(&text, writer.Section(*command));
  }
  return text;
}

}  // namespace weir::cli
