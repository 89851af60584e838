// SPDX-License-Identifier: Apache-2.0
// Conversion of a scenario to arguments of Megatron-LM's pretrain_gpt.py.
#ifndef WEIR_PLAN_FRAMEWORKS_MEGATRON_ARGUMENTS_H_
#define WEIR_PLAN_FRAMEWORKS_MEGATRON_ARGUMENTS_H_

#include <string>
#include <vector>

#include "plan/frameworks/setting.h"
#include "scenarios/scenario.h"

namespace weir::plan {

// Returns the reasons why Megatron-LM cannot run the simulated configuration: a
// schedule that it lacks, a model that is not a GPT, or combinations that its
// validate_args refuses. Empty: it can.
std::vector<std::string> MegatronObstacles(
    const scenarios::ResolvedScenario& scenario);

// Returns the arguments, whose keys have no dashes.
std::vector<Setting> MegatronSettingsOf(
    const scenarios::ResolvedScenario& scenario);

// Returns one argument per line, followed by its value after a space; '#'
// starts a comment. They start the simulated run (same model, layout, precision
// and kernels) on random tokens. Requires of both: MegatronObstacles returns
// nothing.
std::string MegatronArguments(const scenarios::ResolvedScenario& scenario);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_MEGATRON_ARGUMENTS_H_
