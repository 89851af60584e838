// SPDX-License-Identifier: Apache-2.0
// Views of a ranked run: table and JSON.
#ifndef WEIR_PLAN_SWEEP_FAST_ESTIMATE_VIEW_H_
#define WEIR_PLAN_SWEEP_FAST_ESTIMATE_VIEW_H_

#include <string>

#include "absl/strings/string_view.h"
#include "scenarios/scenario.h"
#include "sim/fast/fast_simulator.h"

namespace weir::plan {

std::string FastEstimateTable(const scenarios::ResolvedScenario& scenario,
                              const sim::FastEstimate& run);

// Returns the envelope of results/views/views.h; "result" has the values of a
// sweep's point (SweepOutcome) and the method.
std::string FastEstimateJson(absl::string_view command,
                             const scenarios::ResolvedScenario& scenario,
                             const sim::FastEstimate& run);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SWEEP_FAST_ESTIMATE_VIEW_H_
