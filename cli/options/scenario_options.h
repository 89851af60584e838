// SPDX-License-Identifier: Apache-2.0
// Options that define what is simulated: a scenario's fields, one by one.
#ifndef WEIR_CLI_OPTIONS_SCENARIO_OPTIONS_H_
#define WEIR_CLI_OPTIONS_SCENARIO_OPTIONS_H_

#include "cli/options/options.h"

namespace weir::cli {

// Adds all of them, with `several` schedules or one.
void AddScenario(Options* options, ScenarioFlags* flags, bool several);

// Adds the options of the work of a layer, which "model show" also needs.
void AddWork(Options* options, ScenarioFlags* flags);
void AddTensorParallel(Options* options, ScenarioFlags* flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_SCENARIO_OPTIONS_H_
