// SPDX-License-Identifier: Apache-2.0
// Explanation of a run in which tasks wait for each other forever.
#ifndef WEIR_SIM_REPORT_DEADLOCK_H_
#define WEIR_SIM_REPORT_DEADLOCK_H_

#include <string>

#include "schedules/schedule.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

// Returns "rank 0 waits at position 1 (0B0) for 1B0 at position 2 of rank 1;
// rank 1 waits ...": a shortest cycle of waits through one of the actions of
// some cycle, truncated after 16 waits. If only transfers wait for each other,
// names the actions whose outputs they carry. Requires: `recording` belongs to
// `graph` and is not complete.
std::string DeadlockText(const schedules::Schedule& schedule,
                         const PipelineGraph& graph,
                         const Recording& recording);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_DEADLOCK_H_
