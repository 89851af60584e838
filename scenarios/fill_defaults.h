// SPDX-License-Identifier: Apache-2.0
// Values of fields that a scenario does not set.
#ifndef WEIR_SCENARIOS_FILL_DEFAULTS_H_
#define WEIR_SCENARIOS_FILL_DEFAULTS_H_

#include "calibrate/profile/runtime.pb.h"
#include "models/recipe.pb.h"
#include "scenarios/default_set.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Fills in the defaults that depend only on the fields. Those of training
// options depend on the model, see scenarios/default_set.h.
void FillDefaults(Scenario& scenario);

// Fills in the precision of the recipe that the scenario names, if any, and
// sets `recipe` to `loaded` with the fields of the scenario that replace its
// own.
void ApplyRecipe(const Recipe& loaded, Scenario* scenario, Recipe* recipe);

// Fills in those that depend on the runtime.
void FillDefaultsOf(const Runtime& runtime, Scenario* scenario,
                    UsedDefaults* used);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_FILL_DEFAULTS_H_
