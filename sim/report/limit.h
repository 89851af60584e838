// SPDX-License-Identifier: Apache-2.0
// A one-line description of what limits a schedule.
#ifndef WEIR_SIM_REPORT_LIMIT_H_
#define WEIR_SIM_REPORT_LIMIT_H_

#include <string>
#include <vector>

#include "sim/graph/pipeline_graph.h"
#include "sim/report/gpu_times.h"
#include "sim/report/window.h"

namespace weir::sim {

// Returns the GPU with the longest busy time; the first one in case of a tie.
int BusiestGpu(const std::vector<GpuTimes>& times);

// Names the busiest rank and lists the parts of its time in descending order:
// computation, collectives inside it, optimizer steps, waits for transfers,
// gradient reductions and sharded weights, and the bubble. Leaves out parts
// below 0.5 %. `times` are those of every GPU in the window.
std::string DescribeLimit(const PipelineInputs& inputs,
                          const PipelineGraph& graph, const Window& window,
                          const std::vector<GpuTimes>& times);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_LIMIT_H_
