// SPDX-License-Identifier: Apache-2.0
// What weir and its core share: options of all commands, and parsing.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "cli/options/add_option.h"
#include "cli/options/program.h"
#include "cli/options/shared_options.h"
#include "cli/weir/versions.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {
namespace {

// "help COMMAND" is "COMMAND --help".
std::string FirstWord(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    if (!absl::StartsWith(word, "-") && word != "help") return argv[i];
  }
  return "";
}

}  // namespace

std::unique_ptr<CLI::App> MakeBareApp(CommandLine* line) {
  auto app = MakeProgram(
      "weir",
      "Simulates pipeline-parallel training: how long a step takes, how much "
      "memory\nevery GPU needs, and why.");
  // Run in this order.
  CLI::Option* json = AddSwitch(
      app.get(), "--json", "with --version: also show the libraries, as JSON",
      &line->is_json);
  json->needs(app->set_version_flag(
      "--version",
      [line] { return line->is_json ? VersionJson() : VersionText(); },
      "show the version"));
  app->option_defaults()->group(kOptionsOfAllCommands);
  AddColor(app.get(), &line->flags.output);
  AddMessageFormat(app.get(), [line](bool json) {
    line->flags.output.json_messages = json;
  });
  AddQuiet(app.get(), &line->flags.output.quiet);
  app->footer(
      "weir help COMMAND shows the options of a command.\n\n"
      "Examples:\n"
      "  weir compare pipedream-2bw-gpt-2.2b --schedule gpipe,pipedream-2bw\n"
      "  weir schedule show 1f1b --pp 4 --microbatches 8\n\n"
      "Exit codes: 0 success, 1 negative result (does not fit, deadlock), 2 "
      "usage or\ninput error, 3 a program or device is missing, 70 a bug in "
      "weir, 129, 130 or 143\nterminated by SIGHUP, SIGINT or SIGTERM.");
  return app;
}

absl::StatusOr<std::string> ParseWeirArguments(int argc,
                                               const char* const* argv,
                                               MakeApp* make,
                                               CommandLine* line) {
  const auto parse = [&](std::string first_word) {
    *line = CommandLine();
    line->first_word = std::move(first_word);
    line->flags.command =
        absl::StrJoin(argv + std::min(argc, 1), argv + argc, " ");
    return ParseArguments(argc, argv, make(line).get());
  };
  absl::StatusOr<std::string> text = parse(FirstWord(argc, argv));
  // Errors suggest options of all commands.
  if (!text.ok() && !line->first_word.empty()) text = parse("");
  return text;
}

void AddCommandSets(const std::vector<CommandSet>& sets, CLI::App* app,
                    CommandLine* line) {
  const auto has_command = [line](const CommandSet& set) {
    return absl::c_linear_search(set.names, line->first_word);
  };
  const bool all = absl::c_none_of(sets, has_command);
  for (const CommandSet& set : sets) {
    if (all || has_command(set)) set.add(app, line);
  }
}

CLI::App* AddWeirCommand(CLI::App* parent, const std::string& name,
                         const std::string& summary,
                         const std::vector<std::string>& examples, Command* run,
                         CommandLine* line) {
  CLI::App* command = AddCommand(parent, name, summary, examples);
  command->callback([run, line] { line->command = run; });
  return command;
}

void AddListCommand(CLI::App* group, const std::string& summary, Command* run,
                    CommandLine* line) {
  AddWeirCommand(group, "list", summary, {group->get_name() + " list"}, run,
                 line);
}

}  // namespace weir::cli
