// SPDX-License-Identifier: Apache-2.0
// The part of a result about each GPU.
#ifndef WEIR_SIM_FILL_RANKS_H_
#define WEIR_SIM_FILL_RANKS_H_

#include "results/result.pb.h"
#include "scenarios/scenario.h"
#include "sim/fill_result.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

// Adds an entry for each GPU: its place, busy and idle seconds, and peak memory
// in bytes. Sets the largest values of all GPUs, and whether they fit into
// memory. `keep_timeline`: also adds the memory over time to the timeline.
// Requires: the run is complete.
void FillRanks(const scenarios::ResolvedScenario& resolved,
               const PipelineInputs& inputs, const SimulatedRun& run,
               bool keep_timeline, Result* result);

}  // namespace weir::sim

#endif  // WEIR_SIM_FILL_RANKS_H_
