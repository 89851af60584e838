// SPDX-License-Identifier: Apache-2.0
// Looks for the fastest order under a memory limit among what many policies of
// the greedy give.
#ifndef WEIR_SCHEDULES_SYSTEMS_OFFLOAD_SEARCH_H_
#define WEIR_SCHEDULES_SYSTEMS_OFFLOAD_SEARCH_H_

#include "schedules/systems/offload_order.h"

namespace weir {

// The best that it finds with so much work; deterministic. With offloading
// never slower than without. REQUIRES: as OrderWithOffload.
OffloadOrder FastestOrder(const ScheduleSpec& spec, double limit,
                          bool may_offload);

}  // namespace weir

#endif  // WEIR_SCHEDULES_SYSTEMS_OFFLOAD_SEARCH_H_
