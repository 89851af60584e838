// SPDX-License-Identifier: Apache-2.0
// Memory of one GPU over the simulated run, by class. Allocations and frees
// happen at the starts and ends of tasks, so the peak, its time and its
// composition come from one timeline.
#ifndef WEIR_SIM_REPORT_MEMORY_H_
#define WEIR_SIM_REPORT_MEMORY_H_

#include <array>
#include <vector>

#include "results/result.pb.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

using MemoryByKind = std::array<double, MemoryClass::Kind_ARRAYSIZE>;

struct MemorySample {
  double seconds = 0;
  double bytes = 0;  // in use from then on
};

struct ClassSample {
  MemoryClass::Kind kind = MemoryClass::WEIGHTS;
  double seconds = 0;
  double bytes = 0;  // of that class in use from then on
};

struct MemoryTimeline {
  double peak_bytes = 0;
  double peak_at_seconds = 0;
  MemoryByKind peak_by_kind{};
  double communicator_bytes = 0;  // permanent communication buffers
  // Memory that an allocator caches at the end of a step besides the peak,
  // because blocks of passes do not fit the buffers of the step. It can be
  // released.
  double cached_bytes = 0;
  double floor_bytes = 0;                  // before the first action
  double final_bytes = 0;                  // after the last
  std::vector<MemorySample> samples;       // only if requested
  std::vector<ClassSample> class_samples;  // the same, by class
};

MemoryTimeline TraceMemory(const PipelineInputs& inputs,
                           const PipelineGraph& graph,
                           const Recording& recording, int gpu,
                           bool keep_samples);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_MEMORY_H_
