// SPDX-License-Identifier: Apache-2.0
// Views of the analysis of a recorded run.
#ifndef WEIR_PLAN_STRAGGLERS_WHAT_IF_VIEWS_H_
#define WEIR_PLAN_STRAGGLERS_WHAT_IF_VIEWS_H_

#include <string>

#include "plan/stragglers/what_if.h"
#include "results/import/recorded_run.h"

namespace weir::plan {

// Returns step times, shares of kinds, stages, replicas and the ten slowest
// workers, M_W and M_S, and the suspect.
std::string WhatIfTable(const results::RecordedRun& run, const WhatIf& what_if);

// Returns a JSON object with all values.
std::string WhatIfJson(const results::RecordedRun& run, const WhatIf& what_if);

// Returns "replica 0, stage 0 explains 100 % of the slowdown", or that nothing
// explains half of it.
std::string SuspectText(const WhatIf& what_if);

}  // namespace weir::plan

#endif  // WEIR_PLAN_STRAGGLERS_WHAT_IF_VIEWS_H_
