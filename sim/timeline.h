// SPDX-License-Identifier: Apache-2.0
// A run as the events that traces show.
#ifndef WEIR_SIM_TIMELINE_H_
#define WEIR_SIM_TIMELINE_H_

#include "results/result.pb.h"
#include "sim/engine.h"
#include "sim/memory.h"
#include "sim/pipeline_graph.h"

namespace weir {

// Every action, optimizer step, transfer and collective that ends after
// timeline->from_seconds().
void FillTimeline(const PipelineInputs& inputs, const PipelineGraph& graph,
                  const Recording& recording, Timeline* timeline);

// One GPU's memory samples from then on, with what was in use at that moment.
void FillMemory(int gpu, const MemoryTimeline& memory, Timeline* timeline);

}  // namespace weir

#endif  // WEIR_SIM_TIMELINE_H_
