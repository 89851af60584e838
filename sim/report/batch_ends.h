// SPDX-License-Identifier: Apache-2.0
// The actions with which batches end.
#ifndef WEIR_SIM_REPORT_BATCH_ENDS_H_
#define WEIR_SIM_REPORT_BATCH_ENDS_H_

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

// Returns, for each batch, the position of its last backward (forward, if there
// are none) on a rank. If a batch does not come to this rank: position of the
// batch before; -1: none.
std::vector<int32_t> LastActionsOf(const schedules::Schedule& schedule,
                                   int rank);

// Returns, for each batch, the tasks of the first replica with which it ends:
// its last gradients, or its last outputs. It has ended when all of them have.
std::vector<std::vector<int32_t>> BatchEndTasks(
    const schedules::Schedule& schedule, const PipelineGraph& graph);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_BATCH_ENDS_H_
