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

// Weights and gradients are one buffer each, tensors views of it; the state is
// master weights, first and second moments, one behind the other. Several
// microbatches have a set each of the buffers from kInput on; dropouts of
// theirs should differ in op.seed.
struct StageProgram {
  std::vector<StageBuffer> buffers;
  std::array<std::vector<StageOp>, kNumStagePasses> passes;
  // Buffers that cross stages, or come and go with a microbatch; -1: the stage
  // has none (it is the first, last).
  int input = -1, output = -1, output_gradient = -1, input_gradient = -1;
  int tokens = -1, targets = -1, losses = -1;
  int64_t num_parameters = 0;

  const std::vector<StageOp>& ops(StagePass pass) const {
    return passes[static_cast<int>(pass)];
  }
};

struct StageSpec {
  // Sizes of the microbatch and of tensor parallelism, and how far the
  // vocabulary is padded. What is fused is as the runtime "weir" has it,
  // gradients are fp32, whatever this says.
  WorkSpec work;
  ElementFormat format = ElementFormat::kBf16;  // kFp32 only on the host
  int first_layer = 0, last_layer = 0;          // of LayersOf: [first, last)
  float dropout = 0;
  bool fused_attention = true;
};

// GPT and Llama shapes: causal or not, LayerNorm or RMSNorm, GELU or SwiGLU,
// grouped heads, learned or rotary positions, tied embeddings where one stage
// holds both ends. Tensor parallelism gives the shapes of one GPU without its
// collectives. InvalidArgument names what the stage kernels do not do (experts,
// BERT's heads, sliding windows, sequence parallelism, recomputation).
absl::StatusOr<StageProgram> BuildStageProgram(const Model& model,
                                               const StageSpec& spec);

// Weights, gradients, optimizer state.
int64_t StaticBytes(const StageProgram& program);
// Kept of a microbatch between its forward and its backward-input, what it
// received included; between backward-input and backward-weight. LayersOf's
// stash_bytes and weight_gradient_stash_bytes.
int64_t StashBytes(const StageProgram& program);
int64_t WeightGradientStashBytes(const StageProgram& program);
// What a pass has at its worst moment besides: over StashBytes in the forward
// (where the output is being made), over StashBytes and the received gradient
// in backward-input, over WeightGradientStashBytes in backward-weight.
// LayersOf's forward_scratch_bytes and backward_scratch_bytes.
int64_t ScratchBytes(const StageProgram& program, StagePass pass);

// Bytes in use over one pass of one microbatch, `alive` others being between
// their forward and their backward: what a pool's high-water mark says, but for
// rounding.
int64_t PeakBytes(const StageProgram& program, StagePass pass, int alive);

}  // namespace weir

#endif  // WEIR_CALIBRATE_STAGE_STAGE_PROGRAM_H_
