// SPDX-License-Identifier: Apache-2.0
// All options that define what is simulated, one for each field of a scenario.
#ifndef WEIR_CLI_OPTIONS_SCENARIO_OPTIONS_H_
#define WEIR_CLI_OPTIONS_SCENARIO_OPTIONS_H_

#include <vector>

#include "cli/options/flags.h"
#include "results/compare/measured_run.h"

namespace CLI {
class App;
}  // namespace CLI

namespace weir::cli {

// Requires of all functions: the flags outlive `app` and what is returned.

// Adds all of them, with `several` schedules or one.
void AddScenario(CLI::App* app, bool several, ScenarioFlags* flags);

// Adds those that "plan" does not search: model, cluster and training.
void AddGivenScenario(CLI::App* app, ScenarioFlags* flags);

// Returns all of them as columns of a table of runs: "global_batch_size".
std::vector<results::RunSetting> ScenarioSettings(ScenarioFlags* flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_SCENARIO_OPTIONS_H_
