// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_SIM_REPORT_PEAK_ACTIVATIONS_H_
#define WEIR_SIM_REPORT_PEAK_ACTIVATIONS_H_

#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

// Returns the largest number of microbatches whose activations a GPU holds at
// the same time: from their forward to the end of their B or I (in inference,
// of the forward), except while they are offloaded. A microbatch that passes
// through n stages of the rank counts 1/n in each, since chunks are parts of a
// microbatch's activations. Copies of a stage for other routes count like any
// stage: in DualPipe with P ranks, a rank holds P + 1 over both directions of
// the bidirectional pipeline.
double PeakActivationMicrobatches(const PipelineInputs& inputs,
                                  const PipelineGraph& graph,
                                  const Recording& recording, int gpu);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_PEAK_ACTIVATIONS_H_
