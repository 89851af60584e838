// SPDX-License-Identifier: Apache-2.0
// The one line that says what limits a schedule here.
#ifndef WEIR_SIM_LIMIT_H_
#define WEIR_SIM_LIMIT_H_

#include <string>
#include <vector>

#include "sim/gpu_times.h"
#include "sim/pipeline_graph.h"
#include "sim/window.h"

namespace weir {

// The first of those that are busy longest.
int BusiestGpu(const std::vector<GpuTimes>& times);

// `times` of every GPU in the window. Names the busiest rank and the largest
// of: its own computation, collectives inside it, waiting for transfers, for
// gradient reductions, and the bubble.
std::string DescribeLimit(const PipelineInputs& inputs,
                          const PipelineGraph& graph, const Window& window,
                          const std::vector<GpuTimes>& times);

}  // namespace weir

#endif  // WEIR_SIM_LIMIT_H_
