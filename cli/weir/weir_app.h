// SPDX-License-Identifier: Apache-2.0
// The commands of weir with their options and help.
#ifndef WEIR_CLI_WEIR_WEIR_APP_H_
#define WEIR_CLI_WEIR_WEIR_APP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
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
};

// Returns the program. Parsing sets `line`, which must outlive it.
std::unique_ptr<CLI::App> MakeWeirApp(CommandLine* line);

// Sets `line` as far as the arguments are valid, see ParseArguments.
absl::StatusOr<std::string> ParseWeirArguments(int argc,
                                               const char* const* argv,
                                               CommandLine* line);

// Adds a command that `run` executes, see AddCommand.
CLI::App* AddWeirCommand(CLI::App* parent, const std::string& name,
                         const std::string& summary,
                         const std::vector<std::string>& examples, Command* run,
                         CommandLine* line);

void AddSimulationCommands(CLI::App* app, CommandLine* line);
void AddDrawCommand(CLI::App* app, CommandLine* line);
void AddTraceCommands(CLI::App* app, CommandLine* line);
void AddSweepCommands(CLI::App* app, CommandLine* line);
void AddPlanCommand(CLI::App* app, CommandLine* line);
void AddGoodputCommand(CLI::App* app, CommandLine* line);
void AddEnergyCommand(CLI::App* app, CommandLine* line);
void AddScheduleCommands(CLI::App* app, CommandLine* line);
void AddInputCommands(CLI::App* app, CommandLine* line);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_WEIR_APP_H_
