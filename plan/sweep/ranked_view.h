// SPDX-License-Identifier: Apache-2.0
// What a ranked run knows, for people and programs.
#ifndef WEIR_PLAN_SWEEP_RANKED_VIEW_H_
#define WEIR_PLAN_SWEEP_RANKED_VIEW_H_

#include <string>

#include "absl/strings/string_view.h"
#include "scenarios/scenario.h"
#include "sim/rank.h"

namespace weir {

std::string RankedTable(const ResolvedScenario& scenario, const RankedRun& run);

// The envelope of results/views.h; "result" has the figures of a sweep's point
// (SweepOutcome) and how they were found.
std::string RankedJson(absl::string_view command,
                       const ResolvedScenario& scenario, const RankedRun& run);

}  // namespace weir

#endif  // WEIR_PLAN_SWEEP_RANKED_VIEW_H_
