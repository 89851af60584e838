// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_SCHEDULES_STAGES_BY_RANK_H_
#define WEIR_SCHEDULES_STAGES_BY_RANK_H_

#include <vector>

#include "schedules/schedule.h"

namespace weir::schedules {

// Returns Schedule::StagesOf of every rank, in the time of a single call.
// Requires: the routes contain only ranks of the schedule.
std::vector<std::vector<int>> StagesByRank(const Schedule& schedule);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_STAGES_BY_RANK_H_
