// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_SIM_REPORT_HOST_MEMORY_H_
#define WEIR_SIM_REPORT_HOST_MEMORY_H_

#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

// Returns the bytes of activations and optimizer states of a GPU that its host
// keeps (docs/offload.md), with `microbatches` in flight, counted as by
// PeakActivationMicrobatches.
double HostBytes(const PipelineInputs& inputs, const PipelineGraph& graph,
                 int gpu, double microbatches);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_HOST_MEMORY_H_
