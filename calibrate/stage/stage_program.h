// SPDX-License-Identifier: Apache-2.0
// A stage of a model, as it is really run: buffers, and the operations of each
// pass. What models/ counts of the same layers (LayersOf with the runtime
// "weir") is what this does: the same kernels, the same bytes kept.
#ifndef WEIR_CALIBRATE_STAGE_STAGE_PROGRAM_H_
#define WEIR_CALIBRATE_STAGE_STAGE_PROGRAM_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/stage/stage_op.h"
#include "models/model.pb.h"

namespace weir {

// What a buffer is for; of one microbatch from kInput on.
enum class BufferClass : uint8_t {
  kWeights,              // half, one version
  kGradients,            // fp32, accumulated over microbatches
  kOptimizerState,       // master weights and both moments, fp32
  kInput,                // tokens, targets; activations or gradients received
  kOutput,               // sent on: activations, or the gradient of the input
  kActivations,          // from the forward to the end of backward-input
  kWeightGradientStash,  // made or still needed in backward-input, needed in
                         // backward-weight
  kScratch,              // within one pass
};
inline constexpr int kNumBufferClasses = 8;
const char* Name(BufferClass buffer_class);  // "weight_gradient_stash"

enum class StagePass : uint8_t {
  kForward,
  kBackwardInput,
  kBackwardWeight,
  kOptimizer,
};
inline constexpr int kNumStagePasses = 4;
const char* Name(StagePass pass);  // "backward_input"

struct StageBuffer {
  std::string name;
  BufferClass buffer_class = BufferClass::kScratch;
  ElementFormat format = ElementFormat::kFp32;
  int64_t num_elements = 0;
  // Taken before operation `first_op` of `first_pass` and given back behind
  // `last_op` of `last_pass`. Weights, gradients, states: always there (-1).
  StagePass first_pass = StagePass::kForward, last_pass = StagePass::kForward;
  int first_op = -1, last_op = -1;

  int64_t bytes() const { return num_elements * BytesOf(format); }
};

struct StageProgram {
  std::vector<StageBuffer> buffers;
  std::array<std::vector<StageOp>, kNumStagePasses> passes;
  // Buffers that cross stages; -1: the stage has none (it is the first, last).
  int input = -1, output = -1, output_gradient = -1, input_gradient = -1;
  int tokens = -1, targets = -1, losses = -1;
  int64_t num_parameters = 0;

  const std::vector<StageOp>& ops(StagePass pass) const {
    return passes[static_cast<int>(pass)];
  }
};

struct StageSpec {
  WorkSpec work;  // fused_* as the runtime "weir" has them
  ElementFormat format = ElementFormat::kBf16;  // kFp32 only on the host
  int first_layer = 0, last_layer = 0;          // of LayersOf: [first, last)
  float dropout = 0;
  bool fused_attention = true;  // same as work.flash_attention
};

// GPT and Llama shapes: causal or not, LayerNorm or RMSNorm, GELU or SwiGLU,
// grouped heads, learned or rotary positions, tied embeddings where one stage
// holds both ends. Tensor parallelism gives the shapes of one GPU without its
// collectives. InvalidArgument names what the stage kernels do not do (experts,
// BERT's heads, sliding windows, sequence parallelism, recomputation).
absl::StatusOr<StageProgram> BuildStageProgram(const Model& model,
                                               const StageSpec& spec);

// Bytes in use over one pass of one microbatch, `alive` others being between
// their forward and their backward: what a pool's high-water mark says, but for
// rounding.
int64_t PeakBytes(const StageProgram& program, StagePass pass, int alive);

}  // namespace weir

#endif  // WEIR_CALIBRATE_STAGE_STAGE_PROGRAM_H_
