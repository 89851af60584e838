// SPDX-License-Identifier: Apache-2.0
// Values of fields that a scenario does not set.
#ifndef WEIR_SCENARIOS_FILL_DEFAULTS_H_
#define WEIR_SCENARIOS_FILL_DEFAULTS_H_

#include "calibrate/profile/runtime.pb.h"
#include "models/model.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Fills in the defaults that depend only on the fields.
void FillDefaults(Scenario& scenario);

// Fill in the defaults that depend on the model, then those that depend on the
// runtime.
void FillDefaultsOf(const Model& model, Scenario& scenario);
void FillDefaultsOf(const Runtime& runtime, Scenario& scenario);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_FILL_DEFAULTS_H_
