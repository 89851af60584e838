// SPDX-License-Identifier: Apache-2.0
// Values of Megatron-LM's arguments (megatron/training/arguments.py).
#ifndef WEIR_PLAN_FRAMEWORKS_MEGATRON_NAMES_H_
#define WEIR_PLAN_FRAMEWORKS_MEGATRON_NAMES_H_

#include "models/recipe.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::plan {

// Returns the value of --exp-avg-dtype and arguments like it.
const char* MegatronName(StateFormat format);

// Returns the value of --fp8-recipe.
const char* MegatronRecipe(const Recipe& recipe);

// Returns the value of --optimizer.
const char* MegatronOptimizer(Optimizer optimizer);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_MEGATRON_NAMES_H_
