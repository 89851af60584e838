// SPDX-License-Identifier: Apache-2.0
#include "cli/options/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "base/spelling.h"
#include "base/synonyms.h"
#include "base/text.h"
#include "cli/options/add_option.h"

namespace weir::cli {
namespace {

using Words = std::vector<std::string>;

// Returns true if the words ask for help; removes that request.
bool TakeHelp(Words* words) {
  const auto end = std::find(words->begin(), words->end(), "--");
  const auto kept = std::remove_if(words->begin(), end, [](const auto& word) {
    return word == "--help" || word == "-h";
  });
  bool help = kept != end;
  words->erase(kept, end);
  if (!words->empty() && words->front() == "help") {
    words->erase(words->begin());
    help = true;
  }
  return help;
}

// Returns the names of options with "=" and no value, as in "--tp=", and
// removes them: CLI11 takes the next word as their value.
Words TakeEmptyValues(Words* words) {
  Words names;
  const auto end = std::find(words->begin(), words->end(), "--");
  const auto kept = std::remove_if(words->begin(), end, [&](const auto& word) {
    const bool is_empty =
        absl::StartsWith(word, "--") && word.find('=') + 1 == word.size();
    if (is_empty) names.push_back(word.substr(0, word.size() - 1));
    return is_empty;
  });
  words->erase(kept, end);
  return names;
}

Words CommandsOf(const CLI::App& group) {
  Words names;
  for (const CLI::App* command : group.get_subcommands({})) {
    names.push_back(command->get_name());
  }
  if (group.get_parent() == nullptr) names.push_back("help");
  return names;
}

// Returns a suggestion for an unknown command: "; did you mean weir model
// list?" for "weir list models", the commands of all groups for "weir list", or
// a similar name. `words` are all unknown words of the line.
std::string SuggestCommand(const std::string& word, const Words& words,
                           const CLI::App& program, const CLI::App& command) {
  if (word == "weir-calibrate") {
    return "; weir-calibrate is a separate program (weir-calibrate help)";
  }
  if (&command != &program) return DidYouMean(word, CommandsOf(command));
  Words groups, full_names;
  for (const CLI::App* group : program.get_subcommands({})) {
    const Words commands = CommandsOf(*group);
    if (absl::c_linear_search(commands, word)) {
      groups.push_back(group->get_name());
      full_names.push_back(absl::StrCat(FullName(*group), " ", word));
    }
  }
  if (full_names.empty()) return DidYouMean(word, CommandsOf(program));
  for (const std::string& other : words) {
    const std::string group = NearestWord(other, groups);
    if (group.empty()) continue;
    return absl::StrCat("; did you mean ", FullName(program), " ", group, " ",
                        word, "?");
  }
  return absl::StrCat("; did you mean ", absl::StrJoin(full_names, " or "),
                      "?");
}

// Returns the words of the line that follow an unknown option and are probably
// its value.
Words ValuesOfUnknown(const Words& line, const Words& unknown) {
  Words values;
  for (size_t i = 0; i + 1 < line.size(); ++i) {
    if (absl::StartsWith(line[i], "--") && !absl::StrContains(line[i], '=') &&
        !absl::StartsWith(line[i + 1], "-") &&
        absl::c_linear_search(unknown, line[i])) {
      values.push_back(line[i + 1]);
    }
  }
  return values;
}

Words OptionsOf(const CLI::App& app) {
  Words options;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      options.push_back(absl::StrCat("--", name));
    }
  }
  return options;
}

// Appends the full names of the commands below `app` that have the option.
void FindOption(const CLI::App& app, const std::string& option,
                Words* commands) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (absl::c_linear_search(OptionsOf(*command), option)) {
      commands->push_back(FullName(*command));
    }
    FindOption(*command, option, commands);
  }
}

// Returns "; weir plan has it", or a similar name of an option of this command.
std::string SuggestOption(const std::string& option, const Words& options,
                          const CLI::App& program) {
  Words commands;
  FindOption(program, option, &commands);
  constexpr size_t kMostCommands = 3;
  if (commands.empty() || commands.size() > kMostCommands) {
    return SuggestName(option, options);
  }
  return absl::StrCat("; ", absl::StrJoin(commands, ", "),
                      commands.size() == 1 ? " has it" : " have it");
}

// Adds every word that is neither an option nor the value of one, each option
// once. `line` are all words. Returns true if one is in the place of a command.
bool AddUnknownWords(const Words& line, const Words& words,
                     const CLI::App& program, const CLI::App& command,
                     Problems* problems) {
  const Words commands = CommandsOf(command);
  Words options = OptionsOf(command);
  const Words of_program = OptionsOf(program);
  options.insert(options.end(), of_program.begin(), of_program.end());
  Words values = ValuesOfUnknown(line, words);
  std::set<std::string> reported;
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (absl::StartsWith(word, "-")) {
      if (!reported.insert(name).second) continue;
      problems->Add("", absl::StrCat("unknown option ", EscapeLine(name),
                                     SuggestOption(name, options, program)));
    } else if (const auto value = absl::c_find(values, word);
               value != values.end()) {
      values.erase(value);
    } else if (commands.empty()) {
      problems->Add("", absl::StrCat("unexpected argument ", EscapeLine(word)));
    } else if (absl::c_linear_search(commands, word)) {
      // For "weir list model", CLI11 parses the group and leaves its command.
      problems->Add("", absl::StrCat("unknown command; did you mean ",
                                     FullName(command), " ", word, "?"));
      return true;
    } else {
      // Further words may belong to that command.
      problems->Add(
          "", absl::StrCat("unknown command ", EscapeLine(word),
                           SuggestCommand(word, words, program, command), " (",
                           absl::StrJoin(commands, ", "), ")"));
      return true;
    }
  }
  return false;
}

std::string ValueText(const CLI::Option& option) {
  const std::string value = option.get_type_name();
  return value.empty() ? "a value" : value;
}

bool IsSwitch(const CLI::Option& option) {
  return option.get_items_expected_min() == 0;
}

std::string MissingText(const CLI::Option& option) {
  return IsSwitch(option)
             ? "is missing, expected this option"
             : absl::StrCat("is missing, expected ", ValueText(option));
}

// Returns ", as in " with the first example of a command, if it has one.
std::string ExampleText(const CLI::App& command) {
  const Words lines = absl::StrSplit(command.get_footer(), '\n');
  return lines.size() < 2
             ? ""
             : absl::StrCat(", as in", absl::StripPrefix(lines[1], " "));
}

// Adds options that were given as "--tp=".
void AddEmptyValues(const Words& names, const CLI::App& program,
                    const CLI::App& command, Problems* problems) {
  Words known = OptionsOf(command);
  const Words of_program = OptionsOf(program);
  known.insert(known.end(), of_program.begin(), of_program.end());
  for (const std::string& name : names) {
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option == nullptr) option = program.get_option_no_throw(name);
    if (option == nullptr) {
      problems->Add("", absl::StrCat("unknown option ", EscapeLine(name),
                                     SuggestOption(name, known, program)));
    } else {
      problems->Add(name, absl::StrCat("is empty, expected ",
                                       IsSwitch(*option) ? "true or false"
                                                         : ValueText(*option)));
    }
  }
}

// CLI11 stops at the first error; adds all of them. `example`: for the end of
// the first one that is missing.
void AddBadOptions(CLI::App* app, bool failed, std::string example,
                   Problems* problems) {
  for (CLI::Option* option : app->get_options()) {
    if (option->count() == 0) {
      if (!option->get_required()) continue;
      problems->Add(option->get_name(),
                    absl::StrCat(MissingText(*option), example));
      example.clear();
    } else if (failed) {
      const absl::Status status = RunOption(option);
      if (!status.ok()) problems->Add(option->get_name(), status.message());
    }
  }
}

}  // namespace

std::unique_ptr<CLI::App> MakeProgram(const std::string& name,
                                      const std::string& description) {
  auto program = std::make_unique<CLI::App>(description, name);
  // Commands inherit these settings.
  program->set_help_flag();
  program->formatter(MakeHelpFormatter());
  program->allow_extras();
  program->fallthrough();
  program->require_subcommand(0, 1);
  program->group("Commands");
  program->option_defaults()->take_last();
  return program;
}

CLI::App* AddCommand(CLI::App* parent, const std::string& name,
                     const std::string& summary, const Words& examples) {
  CLI::App* command = parent->add_subcommand(name, summary);
  command->option_defaults()->group("Options");
  const std::string full_name = FullName(*command);
  std::string footer = examples.empty() ? "" : "Examples:";
  for (const std::string& example : examples) {
    absl::StrAppend(&footer, "\n  ", full_name.substr(0, full_name.find(' ')),
                    " ", example);
  }
  command->footer(footer);
  return command;
}

std::string FullName(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr
             ? command.get_name()
             : absl::StrCat(FullName(*parent), " ", command.get_name());
}

absl::StatusOr<std::string> ParseArguments(int argc, const char* const* argv,
                                           CLI::App* program) {
  Words words(argv + std::min(argc, 1), argv + argc);
  const bool help = TakeHelp(&words);
  const Words empty = TakeEmptyValues(&words);
  const Words line = words;
  std::reverse(words.begin(), words.end());
  std::string version, error, without_value;
  try {
    program->parse(std::move(words));
  } catch (const CLI::CallForVersion& call) {
    version = call.what();
  } catch (const CLI::ArgumentMismatch& mismatch) {
    // "--pp: 1 required N missing"
    error = mismatch.what();
    without_value = error.substr(0, error.find(':'));
  } catch (const CLI::ParseError& any) {
    error = any.what();
  }
  CLI::App* command = program;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
  }
  Words extras = program->remaining(/*recurse=*/true);
  extras.erase(std::remove(extras.begin(), extras.end(), "--"), extras.end());
  Problems problems(FullName(*command));
  const bool unknown =
      AddUnknownWords(line, extras, *program, *command, &problems);
  if (unknown) return problems.ToStatus();
  if (help) return program->help();
  AddEmptyValues(empty, *program, *command, &problems);
  AddBadOptions(program, !error.empty(), "", &problems);
  if (command != program) {
    // Shows an example if the user gave only the name of the command.
    const bool is_bare =
        FullName(*command) ==
        absl::StrCat(FullName(*program), " ", absl::StrJoin(line, " "));
    AddBadOptions(command, !error.empty(), is_bare ? ExampleText(*command) : "",
                  &problems);
  }
  if (!without_value.empty()) problems.Add(without_value, "requires a value");
  const Words commands = CommandsOf(*command);
  if (problems.empty() && !error.empty()) {
    problems.Add("", error);
  } else if (problems.empty() && version.empty() && !commands.empty()) {
    problems.Add("", absl::StrCat("no command given (",
                                  absl::StrJoin(commands, ", "), ")"));
  }
  if (!problems.empty()) return problems.ToStatus();
  return version;
}

}  // namespace weir::cli
