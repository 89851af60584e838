// SPDX-License-Identifier: Apache-2.0
#include "sim/report/host_memory.h"

namespace weir::sim {

double HostBytes(const PipelineInputs& inputs, const PipelineGraph& graph,
                 int gpu, double microbatches) {
  double bytes = 0;
  for (const int stage : graph.rank_stages[graph.rank_of(gpu)]) {
    const HostOffload& offload = inputs.costs.of(gpu, stage).offload;
    bytes += offload.host_state_bytes;
    for (const HostOffload::Window& window : offload.windows) {
      bytes += microbatches * window.bytes;
    }
  }
  return bytes;
}

}  // namespace weir::sim
