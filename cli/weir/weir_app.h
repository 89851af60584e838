// SPDX-License-Identifier: Apache-2.0
// The commands of weir with their options and help.
#ifndef WEIR_CLI_WEIR_WEIR_APP_H_
#define WEIR_CLI_WEIR_WEIR_APP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/options/flags.h"
#include "cli/weir/commands.h"

namespace CLI {
class App;
}  // namespace CLI

namespace weir::cli {

struct CommandLine {
  Command* command = nullptr;
  Flags flags;
  bool is_json = false;  // of --version
  // The first argument that is not an option. If it is the name of a command, a
  // program is made with this command only, since adding the options of all of
  // them takes a quarter of the time of a short command.
  std::string first_word;
};

// Returns a program. Parsing sets `line`, which must outlive it.
using MakeApp = std::unique_ptr<CLI::App>(CommandLine* line);

// Returns weir with all commands.
MakeApp MakeWeirApp;
// Returns weir with the commands that need little of plan/, so that it is
// built in less time (see ./run).
MakeApp MakeCoreApp;
// Returns weir without commands.
MakeApp MakeBareApp;

// Sets `line` as far as the arguments are valid. Returns the same as
// ParseArguments, also for errors.
absl::StatusOr<std::string> ParseWeirArguments(int argc,
                                               const char* const* argv,
                                               MakeApp* make,
                                               CommandLine* line);

// Adds a command that `run` executes, see AddCommand.
CLI::App* AddWeirCommand(CLI::App* parent, const std::string& name,
                         const std::string& summary,
                         const std::vector<std::string>& examples, Command* run,
                         CommandLine* line);
// Adds "list" to a group of commands.
void AddListCommand(CLI::App* group, const std::string& summary, Command* run,
                    CommandLine* line);

// Commands that a function adds.
struct CommandSet {
  void (*add)(CLI::App* app, CommandLine* line);
  std::vector<absl::string_view> names;
};

// Adds the commands of the sets that have line->first_word; all, if none has.
void AddCommandSets(const std::vector<CommandSet>& sets, CLI::App* app,
                    CommandLine* line);

// Commands of weir and of its core.
void AddRunCommands(CLI::App* app, CommandLine* line);
void AddShowCommand(CLI::App* app, CommandLine* line);
void AddTraceCommand(CLI::App* app, CommandLine* line);
void AddScheduleCommands(CLI::App* app, CommandLine* line);
void AddInputCommands(CLI::App* app, CommandLine* line);
void AddCheckCommands(CLI::App* app, CommandLine* line);

// Commands of weir only.
void AddStudyCommands(CLI::App* app, CommandLine* line);
void AddReportCommands(CLI::App* app, CommandLine* line);
void AddDrawCommand(CLI::App* app, CommandLine* line);
void AddJobsCommand(CLI::App* app, CommandLine* line);
void AddRecordedRunCommands(CLI::App* app, CommandLine* line);
void AddSweepCommands(CLI::App* app, CommandLine* line);
void AddPlanCommand(CLI::App* app, CommandLine* line);
void AddGoodputCommand(CLI::App* app, CommandLine* line);
void AddEnergyCommand(CLI::App* app, CommandLine* line);
void AddSynthesizeCommand(CLI::App* app, CommandLine* line);  // of "schedule"
void AddProfileCommands(CLI::App* app, CommandLine* line);
void AddInitCommand(CLI::App* app, CommandLine* line);
void AddMachineCommands(CLI::App* app, CommandLine* line);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_WEIR_APP_H_
