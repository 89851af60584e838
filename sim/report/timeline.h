// SPDX-License-Identifier: Apache-2.0
// Conversion of a run to the events that traces show.
#ifndef WEIR_SIM_REPORT_TIMELINE_H_
#define WEIR_SIM_REPORT_TIMELINE_H_

#include "results/result.pb.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/report/memory.h"

namespace weir::sim {

// Adds every action, optimizer step, transfer and collective that ends at or
// after timeline->from_seconds().
void FillTimeline(const PipelineInputs& inputs, const PipelineGraph& graph,
                  const Recording& recording, Timeline* timeline);

// Adds the memory samples of one GPU from timeline->from_seconds() on,
// including the bytes in use at that time.
void FillMemory(int gpu, const MemoryTimeline& memory, Timeline* timeline);

// The same by class.
void FillClassMemory(int gpu, const MemoryTimeline& memory, Timeline* timeline);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_TIMELINE_H_
