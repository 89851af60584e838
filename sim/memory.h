// SPDX-License-Identifier: Apache-2.0
// Memory of one GPU over the simulated run, by class: allocations and frees
// happen at the starts and ends of tasks, so the peak, its moment and what was
// alive then come from one timeline.
#ifndef WEIR_SIM_MEMORY_H_
#define WEIR_SIM_MEMORY_H_

#include <array>
#include <vector>

#include "sim/engine.h"
#include "sim/pipeline_graph.h"

namespace weir {

enum class MemoryKind : uint8_t {
  kWeights,
  kWeightStash,  // versions beyond the one in use
  kGradients,
  kOptimizerState,
  kActivations,     // of blocks and measured layers
  kEndActivations,  // of the embedding and of what follows the last block
  kRecomputeScratch,
  kPassScratch,          // what eager passes hold besides
  kWeightGradientStash,  // inputs that W still needs after I
  kCommunicationBuffers,
  kReserved,         // context, libraries, workspace
  kGatheredWeights,  // of sharded stages, while passes run through them
  kPredictedWeights,
  kEstimateBuffers,  // averages that predictions extrapolate with
};
inline constexpr int kNumMemoryKinds = 14;

// "weights", "weight_stash", ...
const char* Name(MemoryKind kind);

using MemoryByKind = std::array<double, kNumMemoryKinds>;

struct MemorySample {
  double seconds = 0;
  double bytes = 0;  // in use from then on
};

struct MemoryTimeline {
  double peak_bytes = 0;
  double peak_at_seconds = 0;
  MemoryByKind peak_by_kind{};
  double communicator_bytes = 0;      // of communication buffers, for good
  double floor_bytes = 0;             // before the first action
  double final_bytes = 0;             // after the last
  std::vector<MemorySample> samples;  // only if asked for
};

MemoryTimeline TraceMemory(const PipelineInputs& inputs,
                           const PipelineGraph& graph,
                           const Recording& recording, int gpu,
                           bool keep_samples);

// Most microbatches that a GPU holds activations of, between their forward and
// the end of their B or I (inference: of the forward), not while they are
// offloaded. A microbatch that passes through n stages of the rank counts 1/n
// in each: chunks are parts of a microbatch's activations. The copies of a
// stage that other routes have there count like any stage: in both directions
// of a bidirectional pipeline together a rank of DualPipe's P holds P + 1.
double PeakActivationMicrobatches(const PipelineInputs& inputs,
                                  const PipelineGraph& graph,
                                  const Recording& recording, int gpu);

}  // namespace weir

#endif  // WEIR_SIM_MEMORY_H_
