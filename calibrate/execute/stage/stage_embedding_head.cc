// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/stage/stage_embedding_head.h"

#include <utility>

namespace weir::calibrate {

Embedding::Embedding(StageBuilder* b, int tokens)
    : b_(b), tokens_{.buffer = tokens} {
  const StageSizes& sizes = b->sizes();
  table_ = b->Parameter(sizes.vocabulary * sizes.hidden);
  const int64_t positions = b->transformer().num_positions();
  if (positions > 0) positions_ = b->Parameter(positions * sizes.hidden);
}

TensorView Embedding::Forward() {
  const TensorView y = b_->Stream("embedding y");
  StageOp op = Op(OpKind::kEmbeddingForward, "embedding");
  op.inputs = {tokens_, table_, positions_};
  op.outputs = {y};
  b_->Add(ProgramPass::kForward, std::move(op), models::KernelPart::kEmbedding);
  return y;
}

void Embedding::BackwardWeight(const TensorView& dy) {
  StageOp op = Op(OpKind::kEmbeddingBackward, "embedding dw");
  op.inputs = {dy, tokens_};
  op.outputs = {StageBuilder::GradientOf(table_),
                StageBuilder::GradientOf(positions_)};
  b_->Add(ProgramPass::kBackwardWeight, std::move(op),
          models::KernelPart::kEmbedding);
}

StageOp Embedding::Op(OpKind kind, const std::string& name) const {
  const StageSizes& sizes = b_->sizes();
  StageOp op = b_->Op(kind, name, sizes.tokens, sizes.hidden);
  op.inner = sizes.vocabulary;
  return op;
}

Head::Head(StageBuilder* b, std::optional<TensorView> table) : b_(b) {
  const StageSizes& sizes = b->sizes();
  norm_ = MakeNorm(b, "head norm");
  linear_ = {
      .name = "logits",
      .in = sizes.hidden,
      .out = sizes.vocabulary,
      .weight = table ? *table : b->Parameter(sizes.vocabulary * sizes.hidden),
      .part = models::KernelPart::kVocabularyGemm,
      .needed = sizes.vocabulary_needed};
}

void Head::Forward(const TensorView& x) {
  const StageSizes& sizes = b_->sizes();
  norm_.sum = x;
  y_ = b_->Stream("head norm y");
  NormForward(b_, x, {}, y_, norm_);
  logits_ = b_->Half("logits", sizes.tokens * sizes.vocabulary);
  b_->LinearForward(linear_, y_, logits_);
  const TensorView losses =
      b_->Other("losses", sizes.tokens, ElementFormat::kFp32);
  b_->MakeOutput(losses);
  StageProgram& program = b_->program();
  program.losses = losses.buffer;
  StageOp op =
      b_->Op(OpKind::kCrossEntropy, "loss", sizes.tokens, sizes.vocabulary);
  op.inputs = {logits_, {.buffer = program.targets}};
  op.outputs = {logits_, losses};
  b_->Add(ProgramPass::kForward, std::move(op), models::KernelPart::kLoss);
}

TensorView Head::BackwardInput() {
  const TensorView dy = b_->Stream("head norm dy");
  b_->LinearBackwardInput(linear_, logits_, dy);
  const TensorView dx = b_->Stream("head dx");
  NormBackward(b_, norm_, dy, {}, dx);
  return dx;
}

}  // namespace weir::calibrate
