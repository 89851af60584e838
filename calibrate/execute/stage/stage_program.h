// SPDX-License-Identifier: Apache-2.0
// A stage of a model as it is executed: buffers, and the operations of each
// pass. It matches the counts of models/ for the same layers (LayersOf with the
// runtime "weir"): the same kernels, the same bytes saved.
#ifndef WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_PROGRAM_H_
#define WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_PROGRAM_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/execute/stage/stage_op.h"
#include "models/model.pb.h"

namespace weir::calibrate {

// Purpose of a buffer of a program. MemoryClass.Kind says what it counts as on
// a GPU, which also depends on the schedule. Classes from kInput on are per
// microbatch.
enum class BufferClass : uint8_t {
  kWeights,         // half, one version
  kGradients,       // fp32, accumulated over microbatches
  kOptimizerState,  // master weights and both moments, fp32
  kInput,           // tokens, targets; activations or gradients received
  kOutput,          // sent on: activations, or the gradient of the input
  kActivations,     // from the forward to the end of backward-input
  // Computed or still needed in backward-input, and needed in backward-weight.
  kWeightGradientStash,
  kScratch,  // within one pass
};
inline constexpr int kNumBufferClasses = 8;
const char* Name(BufferClass buffer_class);  // "weight_gradient_stash"

// The lists of operations of a program. Unlike schedules::Op, the backward is
// always split, and the optimizer step is included.
enum class ProgramPass : uint8_t {
  kForward,
  kBackwardInput,
  kBackwardWeight,
  kOptimizer,
};
inline constexpr int kNumProgramPasses = 4;
const char* Name(ProgramPass pass);  // "backward_input"

struct StageBuffer {
  std::string name;
  BufferClass buffer_class = BufferClass::kScratch;
  ElementFormat format = ElementFormat::kFp32;
  int64_t num_elements = 0;
  // Allocated before operation `first_op` of `first_pass` and freed after
  // `last_op` of `last_pass`. Weights, gradients, states: always allocated
  // (-1).
  ProgramPass first_pass = ProgramPass::kForward,
              last_pass = ProgramPass::kForward;
  int first_op = -1, last_op = -1;

  int64_t bytes() const { return num_elements * BytesOf(format); }
};

// Weights and gradients are one buffer each, and tensors are views of it. The
// state is master weights, first moments and second moments, in this order.
// Each microbatch has its own set of the buffers from kInput on, and should
// have its own op.seed for dropout.
struct StageProgram {
  std::vector<StageBuffer> buffers;
  std::array<std::vector<StageOp>, kNumProgramPasses> passes;
  // Buffers that cross stages, or exist per microbatch; -1 if the stage has
  // none (it is the first or last).
  int input = -1, output = -1, output_gradient = -1, input_gradient = -1;
  int tokens = -1, targets = -1, losses = -1;
  int64_t num_parameters = 0;

  const std::vector<StageOp>& ops(ProgramPass pass) const {
    return passes[static_cast<int>(pass)];
  }
};

struct StageSpec {
  // Sizes of the microbatch and of tensor parallelism, and the padding of the
  // vocabulary. Fusions are always those of the runtime "weir", and gradients
  // are always fp32.
  models::WorkSpec work;
  ElementFormat format = ElementFormat::kBf16;  // kFp32 only on the host
  int first_layer = 0, last_layer = 0;  // indices into LayersOf: [first, last)
  float dropout = 0;
  bool fused_attention = true;
};

// Builds the program of a GPT or Llama stage: causal or not, LayerNorm or
// RMSNorm, GELU or SwiGLU, grouped heads, learned or rotary positions, tied
// embeddings if one stage holds both ends. Tensor parallelism sets the shapes
// of one GPU, without its collectives. InvalidArgument lists what the stage
// kernels do not support (experts, BERT's heads, sliding windows, sequence
// parallelism, recomputation).
absl::StatusOr<StageProgram> BuildStageProgram(const Model& model,
                                               const StageSpec& spec);

// Returns the bytes of weights, gradients and optimizer state.
int64_t StaticBytes(const StageProgram& program);
// Returns the bytes of a microbatch that are saved between its forward and its
// backward-input, including received buffers, or between backward-input and
// backward-weight. LayersOf's stash_bytes and weight_gradient_stash_bytes.
int64_t StashBytes(const StageProgram& program);
int64_t WeightGradientStashBytes(const StageProgram& program);
// Returns the peak additional bytes of a pass: over StashBytes in the forward
// (during which the output is computed), over StashBytes and the received
// gradient in backward-input, over WeightGradientStashBytes in backward-weight.
// LayersOf's forward_scratch_bytes and backward_scratch_bytes.
int64_t ScratchBytes(const StageProgram& program, ProgramPass pass);

// Returns the peak bytes over one pass of one microbatch while `alive` others
// are between their forward and their backward: the high-water mark of a pool,
// without rounding.
int64_t PeakBytes(const StageProgram& program, ProgramPass pass, int alive);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_PROGRAM_H_
