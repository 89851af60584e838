// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/stage/stage_block.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace weir::calibrate {

Block::Block(StageBuilder* b, int layer)
    : b_(b), name_(absl::StrCat("block ", layer)), seed_(uint64_t{2} * layer) {
  const Transformer& t = b->transformer();
  const StageSizes& sizes = b->sizes();
  const int64_t into = t.gated_feed_forward() ? 2 : 1;
  norm1_ = MakeNorm(b, Named("norm 1"));
  qkv_ = b->MakeLinear(Named("qkv"), sizes.hidden, sizes.packed(),
                       t.attention_bias(), models::KernelPart::kProjectionGemm);
  qkv_.needed = sizes.projection_needed;
  projection_ = b->MakeLinear(Named("projection"), sizes.query, sizes.hidden,
                              t.attention_output_bias(),
                              models::KernelPart::kProjectionGemm);
  norm2_ = MakeNorm(b, Named("norm 2"));
  into_ = b->MakeLinear(Named("feed-forward 1"), sizes.hidden,
                        into * sizes.feed_forward, t.feed_forward_bias(),
                        models::KernelPart::kFeedForwardGemm);
  out_ = b->MakeLinear(Named("feed-forward 2"), sizes.feed_forward,
                       sizes.hidden, t.feed_forward_bias(),
                       models::KernelPart::kFeedForwardGemm);
}

TensorView Block::Forward(const TensorView& x) {
  norm1_.sum = x;
  y1_ = b_->Stream(Named("norm 1 y"));
  NormForward(b_, x, {}, y1_, norm1_);
  const Added attention = Attention();
  norm2_.sum = b_->Stream(Named("sum"));
  y2_ = b_->Stream(Named("norm 2 y"));
  NormForward(b_, x, attention, y2_, norm2_);
  mask1_ = attention.mask;
  return FeedForward();
}

TensorView Block::BackwardInput(const TensorView& d_out) {
  d_out2_ = DropoutBackward(d_out, mask2_, "feed-forward");
  FeedForwardBackward();
  const TensorView dy2 = b_->Stream(Named("norm 2 dy"));
  b_->LinearBackwardInput(into_, d_into_, dy2);
  const TensorView d_sum = b_->Stream(Named("sum dx"));
  NormBackward(b_, norm2_, dy2, d_out, d_sum);
  d_out1_ = DropoutBackward(d_sum, mask1_, "attention");
  AttentionBackward();
  const TensorView dy1 = b_->Stream(Named("norm 1 dy"));
  b_->LinearBackwardInput(qkv_, d_packed_, dy1);
  const TensorView dx = b_->Stream(Named("dx"));
  NormBackward(b_, norm1_, dy1, d_sum, dx);
  return dx;
}

void Block::BackwardWeight() {
  b_->LinearBackwardWeight(out_, d_out2_, activation_);
  b_->LinearBackwardWeight(into_, d_into_, y2_);
  b_->LinearBackwardWeight(projection_, d_out1_, o_);
  b_->LinearBackwardWeight(qkv_, d_packed_, y1_);
}

std::string Block::Named(const char* part) const {
  return absl::StrCat(name_, " ", part);
}

TensorView Block::Mask(const char* part) {
  if (b_->spec().dropout == 0) return {};
  return b_->Other(absl::StrCat(name_, " ", part, " mask"),
                   tokens() * b_->sizes().hidden, ElementFormat::kUint8);
}

void Block::Rotary(ProgramPass pass, const TensorView& packed) {
  if (b_->transformer().num_positions() > 0) return;
  StageOp op = b_->Op(pass == ProgramPass::kForward ? OpKind::kRotaryForward
                                                    : OpKind::kRotaryBackward,
                      Named("rotary"), tokens(), b_->sizes().packed());
  op.inputs = op.outputs = {packed};
  b_->Add(pass, std::move(op));
}

Added Block::Attention() {
  const StageSizes& sizes = b_->sizes();
  packed_ = b_->Half(Named("packed"), tokens() * sizes.packed());
  b_->LinearForward(qkv_, y1_, packed_);
  Rotary(ProgramPass::kForward, packed_);
  o_ = b_->Half(Named("o"), tokens() * sizes.query);
  statistics_ = AttentionRows("statistics");
  StageOp op = b_->Op(OpKind::kAttentionForward, Named("attention"), tokens(),
                      sizes.query);
  op.inputs = {packed_};
  op.outputs = {o_, statistics_};
  b_->Add(ProgramPass::kForward, std::move(op),
          models::KernelPart::kAttentionCore);
  const Added added{b_->Stream(Named("projection y")), Mask("attention"),
                    seed_};
  b_->LinearForward(projection_, o_, added.delta);
  return added;
}

void Block::AttentionBackward() {
  const StageSizes& sizes = b_->sizes();
  const TensorView d_o = b_->Half(Named("o dx"), tokens() * sizes.query);
  b_->LinearBackwardInput(projection_, d_out1_, d_o);
  d_packed_ = b_->Half(Named("packed dx"), tokens() * sizes.packed());
  StageOp op = b_->Op(OpKind::kAttentionBackward, Named("attention dx"),
                      tokens(), sizes.query);
  op.inputs = {d_o, o_, packed_, statistics_};
  op.outputs = {d_packed_, AttentionRows("scratch")};
  b_->Add(ProgramPass::kBackwardInput, std::move(op),
          models::KernelPart::kAttentionCore);
  Rotary(ProgramPass::kBackwardInput, d_packed_);
}

TensorView Block::AttentionRows(const char* part) {
  const std::string name = Named(absl::StrCat("attention ", part).c_str());
  const int64_t rows = b_->sizes().heads * tokens();
  return b_->spec().fused_attention
             ? b_->Other(name, rows, ElementFormat::kFp32)
             : b_->Half(name, rows * b_->sizes().sequence_length);
}

TensorView Block::FeedForward() {
  const StageSizes& sizes = b_->sizes();
  pre_activation_ = b_->Half(Named("pre-activation"), tokens() * into_.out);
  activation_ = b_->Half(Named("activation"), tokens() * sizes.feed_forward);
  if (gated()) {
    b_->LinearForward(into_, y2_, pre_activation_);
    StageOp op = b_->Op(OpKind::kGatedForward, Named("gate"), tokens(),
                        sizes.feed_forward);
    op.inputs = {pre_activation_};
    op.outputs = {activation_};
    b_->Add(ProgramPass::kForward, std::move(op));
  } else {
    b_->LinearForward(into_, y2_, activation_, pre_activation_);
  }
  const TensorView delta = b_->Stream(Named("feed-forward y"));
  b_->LinearForward(out_, activation_, delta);
  mask2_ = Mask("feed-forward");
  const TensorView y = b_->Stream(Named("y"));
  StageOp op = b_->Op(OpKind::kResidualForward, Named("residual"), tokens(),
                      sizes.hidden);
  op.seed = seed_ + 1;
  op.dropout = b_->spec().dropout;
  op.inputs = {norm2_.sum, delta, {}};
  op.outputs = {y, mask2_};
  b_->Add(ProgramPass::kForward, std::move(op));
  return y;
}

void Block::FeedForwardBackward() {
  const int64_t width = b_->sizes().feed_forward;
  d_into_ = b_->Half(Named("pre-activation dx"), tokens() * into_.out);
  if (!gated()) {
    b_->LinearBackwardInput(out_, d_out2_, d_into_, pre_activation_);
    return;
  }
  const TensorView d = b_->Half(Named("activation dx"), tokens() * width);
  b_->LinearBackwardInput(out_, d_out2_, d);
  StageOp op =
      b_->Op(OpKind::kGatedBackward, Named("gate dx"), tokens(), width);
  op.inputs = {d, pre_activation_};
  op.outputs = {d_into_};
  b_->Add(ProgramPass::kBackwardInput, std::move(op));
}

TensorView Block::DropoutBackward(const TensorView& d, const TensorView& mask,
                                  const char* part) {
  if (!mask.present()) return d;
  const std::string name = absl::StrCat(name_, " ", part, " dropout dx");
  const TensorView delta = b_->Stream(name);
  StageOp op =
      b_->Op(OpKind::kDropoutBackward, name, tokens(), b_->sizes().hidden);
  op.dropout = b_->spec().dropout;
  op.inputs = {d, mask};
  op.outputs = {delta};
  b_->Add(ProgramPass::kBackwardInput, std::move(op));
  return delta;
}

}  // namespace weir::calibrate
