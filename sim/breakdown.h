// SPDX-License-Identifier: Apache-2.0
// What one GPU spends a batch on, part by part.
#ifndef WEIR_SIM_BREAKDOWN_H_
#define WEIR_SIM_BREAKDOWN_H_

#include <vector>

#include "results/result.pb.h"
#include "sim/engine.h"
#include "sim/gpu_times.h"
#include "sim/pipeline_graph.h"
#include "sim/window.h"

namespace weir {

// The parts of PartSeconds that take time, largest first; per batch of the
// window, so that they add up to window.batch_seconds(). `times` are those of
// this GPU in the window.
std::vector<PartSeconds> BreakDown(const PipelineInputs& inputs,
                                   const PipelineGraph& graph,
                                   const Recording& recording, int gpu,
                                   const Window& window, const GpuTimes& times);

}  // namespace weir

#endif  // WEIR_SIM_BREAKDOWN_H_
