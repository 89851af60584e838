// SPDX-License-Identifier: Apache-2.0
// Settings that do not change the result of a scenario.
#ifndef WEIR_SCENARIOS_UNUSED_SETTINGS_H_
#define WEIR_SCENARIOS_UNUSED_SETTINGS_H_

#include <string>
#include <vector>

#include "models/model.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Returns a warning for each setting of the exchange of tokens between experts
// that has no effect, because no GPUs exchange tokens. They are no errors, so
// that sizes can be swept with fixed settings. `scenario` is resolved.
std::vector<std::string> UnusedExpertSettings(const Scenario& scenario,
                                              const Model& model);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_UNUSED_SETTINGS_H_
