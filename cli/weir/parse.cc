// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "base/spelling.h"
#include "base/text.h"
#include "cli/weir/command_table.h"
#include "cli/weir/versions.h"

namespace weir::cli {
namespace {

using Words = std::vector<std::string>;

// Returns the command with whose name the words begin; removes its name from
// them.
const CommandInfo* TakeCommand(Words& words) {
  for (const CommandInfo& command : AllCommands()) {
    const Words name = absl::StrSplit(command.name, ' ');
    if (words.size() >= name.size() &&
        std::equal(name.begin(), name.end(), words.begin())) {
      words.erase(words.begin(), words.begin() + name.size());
      return &command;
    }
  }
  return nullptr;
}

absl::Status NoSuchCommand(const Words& words) {
  Words seconds, names;
  for (const CommandInfo& command : AllCommands()) {
    const Words name = absl::StrSplit(command.name, ' ');
    if (name.size() > 1 && name[0] == words[0]) seconds.push_back(name[1]);
    names.push_back(name[0]);
  }
  if (seconds.empty()) {
    names.push_back("help");
    return absl::InvalidArgumentError(
        absl::StrCat("weir: unknown command ", words[0],
                     DidYouMean(words[0], names), " (see weir help)"));
  }
  if (words.size() == 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "weir ", words[0], ": expected one of ", absl::StrJoin(seconds, ", ")));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "weir ", words[0], ": unknown command ", words[1],
      DidYouMean(words[1], seconds), " (", absl::StrJoin(seconds, ", "), ")"));
}

// Declares an option; adds bad values to `problems`, so that all are reported.
void Declare(const Option& option, CLI::App* app, Problems* problems) {
  const auto take = [&option, problems](const std::string& value) {
    const absl::Status status = option.set(value);
    if (!status.ok()) problems->Add(FirstName(option), status.message());
  };
  if (option.value.empty() && option.names[0] == '-') {
    // "--dropout", "--dropout=false".
    CLI::Option* declared =
        app->add_flag(option.names)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    declared->each(take);
    return;
  }
  CLI::Option* declared =
      app->add_option_function<std::string>(option.names, take);
  if (option.repeats) {
    declared->join(',');
  } else {
    declared->take_last();
  }
}

}  // namespace

absl::Status ParseOptions(absl::string_view where, const Options& options,
                          Words words) {
  Problems problems(where);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  for (const Option& option : options) Declare(option, &app, &problems);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
  } catch (const CLI::ArgumentMismatch& error) {
    // "--pp: 1 required TEXT missing"
    const std::string what = error.what();
    problems.Add(what.substr(0, what.find(':')), "requires a value");
  } catch (const CLI::Error& error) {
    problems.Add("", error.what());
  }
  Words known;
  for (const Option& option : options) {
    for (const std::string& name : AllNames(option)) {
      if (absl::StartsWith(name, "-")) known.push_back(name);
    }
  }
  for (const std::string& extra : app.remaining()) {
    const std::string name = extra.substr(0, extra.find('='));
    problems.Add(
        "", absl::StrCat(absl::StartsWith(name, "-") ? "unknown option "
                                                     : "unexpected argument ",
                         EscapeLine(name), DidYouMean(name, known)));
  }
  for (const Option& option : options) {
    if (option.required && app.count(FirstName(option)) == 0) {
      problems.Add(FirstName(option), "is missing");
    }
  }
  return problems.ToStatus();
}

bool AsksForHelp(const Words& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, "--help") != end ||
         std::find(words.begin(), end, "-h") != end;
}

OutputFlags::Color ColorOf(int argc, const char* const* argv) {
  using Color = OutputFlags::Color;
  // The last one counts, as in a valid command line.
  Color color = Color::kAuto;
  for (int i = 1; i < argc; ++i) {
    absl::string_view value = argv[i];
    if (value == "--") break;
    if (value == "--color") {
      value = i + 1 < argc ? argv[i + 1] : "";
    } else if (!absl::ConsumePrefix(&value, "--color=")) {
      continue;
    }
    if (absl::EqualsIgnoreCase(value, "auto")) color = Color::kAuto;
    if (absl::EqualsIgnoreCase(value, "always")) color = Color::kAlways;
    if (absl::EqualsIgnoreCase(value, "never")) color = Color::kNever;
  }
  return color;
}

absl::StatusOr<CommandLine> ParseCommandLine(int argc,
                                             const char* const* argv) {
  Words words(argv + std::min(argc, 1), argv + argc);
  CommandLine line;
  line.flags.command = absl::StrJoin(words, " ");
  bool help = !words.empty() && words[0] == "help";
  if (help) words.erase(words.begin());
  if (words.empty() || absl::StartsWith(words[0], "-")) {
    if (words == Words{"--version"} || words == Words{"--version", "--json"}) {
      line.text = words.size() == 1 ? VersionText() : VersionJson();
      return line;
    }
    if (!help && !AsksForHelp(words)) {
      return absl::InvalidArgumentError(
          words.empty() ? "weir: no command given (see weir help)"
                        : absl::StrCat("weir: unknown option ", words[0],
                                       " (see weir help)"));
    }
    line.text = HelpText();
    return line;
  }
  const Words all = words;
  const CommandInfo* command = TakeCommand(words);
  help = help || AsksForHelp(words);
  if (command == nullptr) {
    const bool group = all.size() == 1 || absl::StartsWith(all[1], "-");
    if (help && group) line.text = HelpTextOfGroup(all[0]);
    if (!line.text.empty()) return line;
    return NoSuchCommand(all);
  }
  if (help) {
    line.text = HelpText(*command);
    return line;
  }
  line.command = command->run;
  const absl::Status status =
      ParseOptions(absl::StrCat("weir ", command->name),
                   command->options(&line.flags), words);
  if (!status.ok()) return status;
  return line;
}

}  // namespace weir::cli
