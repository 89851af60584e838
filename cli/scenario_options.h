// SPDX-License-Identifier: Apache-2.0
// The options that say what is simulated: a scenario's fields, one by one.
#ifndef WEIR_CLI_SCENARIO_OPTIONS_H_
#define WEIR_CLI_SCENARIO_OPTIONS_H_

#include "cli/options.h"

namespace weir {

// All of them; `several` schedules or one.
void AddScenario(Options* options, ScenarioFlags* flags, bool several);

// How a layer is run: what "model show" needs too.
void AddWork(Options* options, ScenarioFlags* flags);
void AddTensorParallel(Options* options, ScenarioFlags* flags);

}  // namespace weir

#endif  // WEIR_CLI_SCENARIO_OPTIONS_H_
