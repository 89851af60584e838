// SPDX-License-Identifier: Apache-2.0
// Busy, exposed and idle time of one GPU.
#ifndef WEIR_SIM_REPORT_GPU_TIMES_H_
#define WEIR_SIM_REPORT_GPU_TIMES_H_

#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

// Seconds inside one interval of the run. Busy time is passes (including the
// collectives in them; an overlapped pair counts once) and optimizer steps; the
// rest is idle. The exposed parts of idle time are waits during which something
// that the next task needs was in flight: a transfer between ranks or from the
// host, a reduction (of gradients, or of an embedding tied between two stages),
// or a gather of weights (of sharded weights before or inside a pass, of
// weights updated by the optimizer at the end). The rest of idle time is the
// pipeline's bubble. Every number is a sum of lengths, so none is negative;
// busy and idle add up to the interval except for rounding.
struct GpuTimes {
  double busy_seconds = 0;
  double tensor_collective_seconds = 0;  // part of busy
  double expert_exchange_seconds = 0;    // part of busy
  double context_exchange_seconds = 0;   // part of busy
  double exposed_transfer_seconds = 0;   // part of idle
  double exposed_reduction_seconds = 0;  // part of idle
  double exposed_gather_seconds = 0;     // part of idle
  double optimizer_seconds = 0;          // part of busy
  double bubble_seconds = 0;             // part of idle

  double idle_seconds() const {
    return exposed_transfer_seconds + exposed_reduction_seconds +
           exposed_gather_seconds + bubble_seconds;
  }
  double exposed_seconds() const {
    return tensor_collective_seconds + expert_exchange_seconds +
           context_exchange_seconds + exposed_transfer_seconds +
           exposed_reduction_seconds + exposed_gather_seconds;
  }
};

GpuTimes TimesOf(const PipelineInputs& inputs, const PipelineGraph& graph,
                 const Recording& recording, int gpu, double begin_seconds,
                 double end_seconds);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_GPU_TIMES_H_
