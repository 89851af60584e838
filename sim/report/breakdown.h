// SPDX-License-Identifier: Apache-2.0
// The time of one GPU during a batch, part by part.
#ifndef WEIR_SIM_REPORT_BREAKDOWN_H_
#define WEIR_SIM_REPORT_BREAKDOWN_H_

#include <vector>

#include "results/result.pb.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/report/gpu_times.h"
#include "sim/report/window.h"

namespace weir::sim {

// Returns the parts of PartSeconds that take time, largest first, in seconds
// per batch of the window; they add up to window.batch_seconds(). `times` are
// those of this GPU in the window.
std::vector<PartSeconds> BreakDown(const PipelineInputs& inputs,
                                   const PipelineGraph& graph,
                                   const Recording& recording, int gpu,
                                   const Window& window, const GpuTimes& times);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_BREAKDOWN_H_
