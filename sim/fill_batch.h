// SPDX-License-Identifier: Apache-2.0
// The part of a result about the time of a batch.
#ifndef WEIR_SIM_FILL_BATCH_H_
#define WEIR_SIM_FILL_BATCH_H_

#include "results/result.pb.h"
#include "scenarios/scenario.h"
#include "sim/fill_result.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

// The seconds from the start of a GPU's first action to the end of its last.
struct ActionSpan {
  double begin = 0, end = 0;
  double seconds() const { return end - begin; }
};
ActionSpan SpanOf(const SimulatedRun& run, int gpu);

// Sets the time of a batch, its breakdown, limit and uncertainty, throughput,
// FLOPs and utilization. Requires: the run is complete.
void FillBatch(const scenarios::ResolvedScenario& resolved,
               const PipelineInputs& inputs, const SimulatedRun& run,
               Result* result);

}  // namespace weir::sim

#endif  // WEIR_SIM_FILL_BATCH_H_
