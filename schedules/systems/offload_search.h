// SPDX-License-Identifier: Apache-2.0
// Searches for the fastest order under a memory limit among those of many
// greedy policies.
#ifndef WEIR_SCHEDULES_SYSTEMS_OFFLOAD_SEARCH_H_
#define WEIR_SCHEDULES_SYSTEMS_OFFLOAD_SEARCH_H_

#include "schedules/systems/offload_order.h"

namespace weir::schedules {

// Returns the best order found within a fixed budget; deterministic. The order
// with offloading is never slower than without. Requires: see OrderWithOffload.
OffloadOrder FastestOrder(const ScheduleSpec& spec, double limit,
                          bool may_offload);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_SYSTEMS_OFFLOAD_SEARCH_H_
