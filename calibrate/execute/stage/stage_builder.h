// SPDX-License-Identifier: Apache-2.0
// Builds a StageProgram, one operation after the other.
#ifndef WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_BUILDER_H_
#define WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_BUILDER_H_

#include <string>

#include "calibrate/execute/stage/stage_program.h"

namespace weir::calibrate {

// `Shape` of models/ as whole numbers, for one GPU.
struct StageSizes {
  int64_t sequences = 0, sequence_length = 0, tokens = 0;
  int64_t hidden = 0, query = 0, key_value = 0, feed_forward = 0;
  int64_t vocabulary = 0;  // padded
  int heads = 0, kv_heads = 0, head_size = 0;
  // FLOP that the model needs over FLOP performed: below 1 if key-value heads
  // repeat or the vocabulary is padded.
  double projection_needed = 1, vocabulary_needed = 1;

  int64_t packed() const { return query + 2 * key_value; }
};

StageSizes SizesOf(const Transformer& transformer,
                   const models::WorkSpec& spec);

struct Linear {
  std::string name;
  int64_t in = 0, out = 0;
  TensorView weight = {}, bias = {};  // weight [out, in]; bias may be absent
  models::KernelPart part = models::KernelPart::kProjectionGemm;
  double needed = 1;
};

class StageBuilder {
 public:
  StageBuilder(const Transformer& transformer, const StageSpec& spec);

  const Transformer& transformer() const { return transformer_; }
  const StageSpec& spec() const { return spec_; }
  const StageSizes& sizes() const { return sizes_; }
  StageProgram& program() { return program_; }

  // Adds a parameter to the weights. Its gradient has the same offset in the
  // gradients.
  TensorView Parameter(int64_t num_elements);
  static TensorView GradientOf(const TensorView& parameter);

  // Adds a buffer of each microbatch. Its class follows from its uses (see
  // Finish), except for inputs and outputs.
  TensorView Half(const std::string& name, int64_t num_elements);
  TensorView Other(const std::string& name, int64_t num_elements,
                   ElementFormat format);
  // Adds a buffer of tokens x hidden size.
  TensorView Stream(const std::string& name);
  int Input(const std::string& name, int64_t num_elements,
            ElementFormat format);
  void MakeOutput(const TensorView& view);

  // Returns an operation on `rows` x `columns`, with all attributes that
  // operations of its kind take from the spec.
  StageOp Op(OpKind kind, const std::string& name, int64_t rows,
             int64_t columns) const;
  // `needed`: see StageSizes.
  void Add(ProgramPass pass, StageOp op,
           models::KernelPart part = models::KernelPart::kElementwise,
           double needed = 1);

  Linear MakeLinear(const std::string& name, int64_t in, int64_t out, bool bias,
                    models::KernelPart part);
  // Computes y = x w^T [+ bias], or its GELU if aux is given.
  void LinearForward(const Linear& linear, const TensorView& x,
                     const TensorView& y, const TensorView& aux = {});
  // Computes dx = dy w, times GELU's derivative at aux if given.
  void LinearBackwardInput(const Linear& linear, const TensorView& dy,
                           const TensorView& dx, const TensorView& aux = {});
  void LinearBackwardWeight(const Linear& linear, const TensorView& dy,
                            const TensorView& x);

  // Adds the optimizer, sizes of the flat buffers, and lifetimes.
  StageProgram Finish();

 private:
  TensorView AddBuffer(StageBuffer buffer);

  const Transformer& transformer_;
  const StageSpec& spec_;
  const StageSizes sizes_;
  StageProgram program_;
  int64_t parameters_end_ = 0;
};

// Returns the kernels that models/ counts for an operation. Requires: all sizes
// of the operation are set.
std::vector<models::Kernel> KernelsOf(const StageOp& op, ElementFormat format,
                                      models::KernelPart part, double needed);

// Sets classes and lifetimes of the buffers from the operations that use them.
void SetLifetimes(StageProgram* program);

// Adds the operations of all layers, forward and backward.
void AddLayers(StageBuilder* builder);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_BUILDER_H_
