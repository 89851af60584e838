// SPDX-License-Identifier: Apache-2.0
// A scenario as the arguments of Megatron-LM's pretrain_gpt.py.
#ifndef WEIR_PLAN_MEGATRON_ARGUMENTS_H_
#define WEIR_PLAN_MEGATRON_ARGUMENTS_H_

#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace weir {

// Why Megatron-LM cannot run what is simulated, one reason each: a schedule
// that it does not have, a model that is no GPT, combinations that its
// validate_args refuses. Empty: it can.
std::vector<std::string> MegatronObstacles(const ResolvedScenario& scenario);

// One argument a line, its value behind a blank, comments behind '#'. Starts
// the run that is simulated: same model, layout, precision and kernels, on
// random tokens. REQUIRES: no obstacles.
std::string MegatronArguments(const ResolvedScenario& scenario);

}  // namespace weir

#endif  // WEIR_PLAN_MEGATRON_ARGUMENTS_H_
