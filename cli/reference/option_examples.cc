// SPDX-License-Identifier: Apache-2.0
#include "cli/reference/option_examples.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/options/add_option.h"
#include "cli/options/command_tree.h"
#include "cli/options/program.h"
#include "cli/reference/example_lines.h"

namespace weir::cli {
namespace {

std::vector<const CLI::Option*> ArgumentsOf(const CLI::App& app) {
  std::vector<const CLI::Option*> all = PositionalsOf(app);
  const std::vector<const CLI::Option*> options = OptionsOf(app);
  all.insert(all.end(), options.begin(), options.end());
  return all;
}

// Returns the examples in the help of all commands.
std::vector<std::string> HelpExamples(const CLI::App& program) {
  std::vector<std::string> lines;
  for (const CLI::App* command : AllCommands(program)) {
    for (absl::string_view line : absl::StrSplit(command->get_footer(), '\n')) {
      if (absl::ConsumePrefix(&line, "  ")) lines.emplace_back(line);
    }
  }
  return lines;
}

// Returns for the options of the lines the shortest line that has them.
OptionExamples ShortestExamples(const std::vector<std::string>& lines,
                                CLI::App* program) {
  OptionExamples examples;
  for (const std::string& line : lines) {
    const auto command = ParseExampleLine(line, program);
    // A line of the help may also redirect its output.
    if (!command.ok()) continue;
    for (const CLI::Option* option : ArgumentsOf(**command)) {
      if (option->count() == 0) continue;
      std::string& example = examples[option];
      if (example.empty() || line.size() < example.size()) example = line;
    }
  }
  return examples;
}

// Returns the shortest example of an option that has the same name and meaning,
// or "".
std::string ExampleOfTheSame(const CLI::Option& option,
                             const OptionExamples& others) {
  std::string shortest;
  for (const auto& [other, example] : others) {
    const bool is_shorter =
        shortest.empty() || std::pair(example.size(), example) <
                                std::pair(shortest.size(), shortest);
    if (is_shorter && other->get_name() == option.get_name() &&
        other->get_type_name() == option.get_type_name() &&
        other->get_description() == option.get_description()) {
      shortest = example;
    }
  }
  return shortest;
}

}  // namespace

absl::StatusOr<OptionExamples> FindOptionExamples(
    const std::vector<std::string>& lines, const OptionExamples& others,
    CLI::App* program) {
  OptionExamples examples = ShortestExamples(HelpExamples(*program), program);
  examples.merge(ShortestExamples(lines, program));
  std::vector<const CLI::App*> apps = AllCommands(*program);
  apps.push_back(program);
  std::vector<std::string> missing;
  for (const CLI::App* app : apps) {
    for (const CLI::Option* option : ArgumentsOf(*app)) {
      // Options of all commands are missing only once.
      const auto [example, is_new] = examples.try_emplace(option, "");
      if (!is_new) continue;
      example->second = ExampleOfTheSame(*option, others);
      if (!example->second.empty()) continue;
      missing.push_back(absl::StrCat(FullName(*app), " ",
                                     option->get_positional()
                                         ? option->get_name(true)
                                         : NamesOf(*option).front()));
    }
  }
  if (missing.empty()) return examples;
  return absl::NotFoundError(
      absl::StrCat("no example of\n", absl::StrJoin(missing, "\n")));
}

}  // namespace weir::cli
