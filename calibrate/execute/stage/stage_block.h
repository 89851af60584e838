// SPDX-License-Identifier: Apache-2.0
// A block: attention and feed-forward layer, each with norm and residual.
#ifndef WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_BLOCK_H_
#define WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_BLOCK_H_

#include <string>

#include "calibrate/execute/stage/stage_builder.h"
#include "calibrate/execute/stage/stage_norm.h"

namespace weir::calibrate {

class Block {
 public:
  Block(StageBuilder* b, int layer);

  TensorView Forward(const TensorView& x);

  // Computes the gradient of the block's input from that of its output.
  TensorView BackwardInput(const TensorView& d_out);

  void BackwardWeight();

 private:
  bool gated() const { return b_->transformer().gated_feed_forward(); }
  int64_t tokens() const { return b_->sizes().tokens; }
  std::string Named(const char* part) const;

  TensorView Mask(const char* part);

  void Rotary(ProgramPass pass, const TensorView& packed);

  Added Attention();

  void AttentionBackward();

  // Adds a buffer of one number per query (fused), or one per score (unfused).
  TensorView AttentionRows(const char* part);

  TensorView FeedForward();

  void FeedForwardBackward();

  // Returns the gradient of the residual's addend. Without dropout it is `d`.
  TensorView DropoutBackward(const TensorView& d, const TensorView& mask,
                             const char* part);

  StageBuilder* b_;
  std::string name_;
  uint64_t seed_;
  Norm norm1_, norm2_;
  Linear qkv_, projection_, into_, out_;
  TensorView y1_, packed_, o_, statistics_, mask1_, y2_, pre_activation_,
      activation_, mask2_;
  TensorView d_out2_, d_into_, d_out1_, d_packed_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_BLOCK_H_
