// SPDX-License-Identifier: Apache-2.0
// Values of fields that a scenario does not set.
#ifndef WEIR_SCENARIOS_FILL_DEFAULTS_H_
#define WEIR_SCENARIOS_FILL_DEFAULTS_H_

#include "calibrate/profile/runtime.pb.h"
#include "scenarios/default_set.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Fills in the defaults that depend only on the fields. Those of training
// options depend on the model, see scenarios/default_set.h.
void FillDefaults(Scenario& scenario);

// Fills in those that depend on the runtime.
void FillDefaultsOf(const Runtime& runtime, Scenario* scenario,
                    UsedDefaults* used);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_FILL_DEFAULTS_H_
