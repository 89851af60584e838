// SPDX-License-Identifier: Apache-2.0
// Embedding, blocks and head as operations. Between two layers one tensor
// passes: the residual stream forward, its gradient back.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "calibrate/stage/stage_builder.h"

namespace weir {
namespace {

struct Norm {
  std::string name;
  TensorView gain = {}, shift = {}, sum = {}, statistics = {};
};

Norm MakeNorm(StageBuilder* b, const std::string& name) {
  const StageSizes& sizes = b->sizes();
  Norm norm{.name = name, .gain = b->Parameter(sizes.hidden)};
  if (!b->transformer().rms_norm()) norm.shift = b->Parameter(sizes.hidden);
  norm.statistics = b->Other(absl::StrCat(name, " statistics"),
                             2 * sizes.tokens, ElementFormat::kFp32);
  return norm;
}

// What a residual adds: absent where a norm has none before it.
struct Added {
  TensorView delta, mask;
  uint64_t seed = 0;
};

void NormForward(StageBuilder* b, const TensorView& x, const Added& added,
                 const TensorView& y, const Norm& norm) {
  const StageSizes& sizes = b->sizes();
  StageOp op =
      b->Op(OpKind::kNormForward, norm.name, sizes.tokens, sizes.hidden);
  op.seed = added.seed;
  if (added.delta.present()) op.dropout = b->spec().dropout;
  op.inputs = {x, added.delta, {}, {}, norm.gain, norm.shift};
  op.outputs = {added.delta.present() ? norm.sum : TensorView(), y,
                norm.statistics, added.mask};
  b->Add(StagePass::kForward, std::move(op), KernelPart::kNorm);
}

void NormBackward(StageBuilder* b, const Norm& norm, const TensorView& dy,
                  const TensorView& residual, const TensorView& dsum) {
  const StageSizes& sizes = b->sizes();
  StageOp op = b->Op(OpKind::kNormBackward, absl::StrCat(norm.name, " dx"),
                     sizes.tokens, sizes.hidden);
  op.inputs = {dy, norm.sum, norm.statistics, norm.gain, residual};
  op.outputs = {dsum, StageBuilder::GradientOf(norm.gain),
                StageBuilder::GradientOf(norm.shift)};
  b->Add(StagePass::kBackwardInput, std::move(op), KernelPart::kNorm);
}

class Embedding {
 public:
  Embedding(StageBuilder* b, int tokens) : b_(b), tokens_{.buffer = tokens} {
    const StageSizes& sizes = b->sizes();
    table_ = b->Parameter(sizes.vocabulary * sizes.hidden);
    const int64_t positions = b->transformer().num_positions();
    if (positions > 0) positions_ = b->Parameter(positions * sizes.hidden);
  }

  const TensorView& table() const { return table_; }

  TensorView Forward() {
    const TensorView y = b_->Stream("embedding y");
    StageOp op = Op(OpKind::kEmbeddingForward, "embedding");
    op.inputs = {tokens_, table_, positions_};
    op.outputs = {y};
    b_->Add(StagePass::kForward, std::move(op), KernelPart::kEmbedding);
    return y;
  }

  void BackwardWeight(const TensorView& dy) {
    StageOp op = Op(OpKind::kEmbeddingBackward, "embedding dw");
    op.inputs = {dy, tokens_};
    op.outputs = {StageBuilder::GradientOf(table_),
                  StageBuilder::GradientOf(positions_)};
    b_->Add(StagePass::kBackwardWeight, std::move(op), KernelPart::kEmbedding);
  }

 private:
  StageOp Op(OpKind kind, const std::string& name) const {
    const StageSizes& sizes = b_->sizes();
    StageOp op = b_->Op(kind, name, sizes.tokens, sizes.hidden);
    op.inner = sizes.vocabulary;
    return op;
  }

  StageBuilder* b_;
  TensorView tokens_, table_, positions_;
};

class Block {
 public:
  Block(StageBuilder* b, int layer)
      : b_(b), name_(absl::StrCat("block ", layer)), seed_(2 * layer) {
    const Transformer& t = b->transformer();
    const StageSizes& sizes = b->sizes();
    const int64_t into = t.gated_feed_forward() ? 2 : 1;
    norm1_ = MakeNorm(b, Named("norm 1"));
    qkv_ = b->MakeLinear(Named("qkv"), sizes.hidden, sizes.packed(),
                         t.attention_bias(), KernelPart::kProjectionProduct);
    qkv_.needed = sizes.projection_needed;
    projection_ = b->MakeLinear(Named("projection"), sizes.query, sizes.hidden,
                                t.attention_output_bias(),
                                KernelPart::kProjectionProduct);
    norm2_ = MakeNorm(b, Named("norm 2"));
    into_ = b->MakeLinear(Named("feed-forward 1"), sizes.hidden,
                          into * sizes.feed_forward, t.feed_forward_bias(),
                          KernelPart::kFeedForwardProduct);
    out_ =
        b->MakeLinear(Named("feed-forward 2"), sizes.feed_forward, sizes.hidden,
                      t.feed_forward_bias(), KernelPart::kFeedForwardProduct);
  }

  TensorView Forward(const TensorView& x) {
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

  // From the gradient of what the block makes to that of what it takes.
  TensorView BackwardInput(const TensorView& d_out) {
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

  void BackwardWeight() {
    b_->LinearBackwardWeight(out_, d_out2_, activation_);
    b_->LinearBackwardWeight(into_, d_into_, y2_);
    b_->LinearBackwardWeight(projection_, d_out1_, o_);
    b_->LinearBackwardWeight(qkv_, d_packed_, y1_);
  }

 private:
  bool gated() const { return b_->transformer().gated_feed_forward(); }
  int64_t tokens() const { return b_->sizes().tokens; }
  std::string Named(const char* part) const {
    return absl::StrCat(name_, " ", part);
  }

  TensorView Mask(const char* part) {
    if (b_->spec().dropout == 0) return {};
    return b_->Other(absl::StrCat(name_, " ", part, " mask"),
                     tokens() * b_->sizes().hidden, ElementFormat::kUint8);
  }

  void Rotary(StagePass pass, const TensorView& packed) {
    if (b_->transformer().num_positions() > 0) return;
    StageOp op = b_->Op(pass == StagePass::kForward ? OpKind::kRotaryForward
                                                    : OpKind::kRotaryBackward,
                        Named("rotary"), tokens(), b_->sizes().packed());
    op.inputs = op.outputs = {packed};
    b_->Add(pass, std::move(op));
  }

  Added Attention() {
    const StageSizes& sizes = b_->sizes();
    packed_ = b_->Half(Named("packed"), tokens() * sizes.packed());
    b_->LinearForward(qkv_, y1_, packed_);
    Rotary(StagePass::kForward, packed_);
    o_ = b_->Half(Named("o"), tokens() * sizes.query);
    statistics_ = AttentionRows("statistics");
    StageOp op = b_->Op(OpKind::kAttentionForward, Named("attention"), tokens(),
                        sizes.query);
    op.inputs = {packed_};
    op.outputs = {o_, statistics_};
    b_->Add(StagePass::kForward, std::move(op), KernelPart::kAttentionCore);
    const Added added{b_->Stream(Named("projection y")), Mask("attention"),
                      seed_};
    b_->LinearForward(projection_, o_, added.delta);
    return added;
  }

  void AttentionBackward() {
    const StageSizes& sizes = b_->sizes();
    const TensorView d_o = b_->Half(Named("o dx"), tokens() * sizes.query);
    b_->LinearBackwardInput(projection_, d_out1_, d_o);
    d_packed_ = b_->Half(Named("packed dx"), tokens() * sizes.packed());
    StageOp op = b_->Op(OpKind::kAttentionBackward, Named("attention dx"),
                        tokens(), sizes.query);
    op.inputs = {d_o, o_, packed_, statistics_};
    op.outputs = {d_packed_, AttentionRows("scratch")};
    b_->Add(StagePass::kBackwardInput, std::move(op),
            KernelPart::kAttentionCore);
    Rotary(StagePass::kBackwardInput, d_packed_);
  }

  // A number for each query, or for each score.
  TensorView AttentionRows(const char* part) {
    const std::string name = Named(absl::StrCat("attention ", part).c_str());
    const int64_t rows = b_->sizes().heads * tokens();
    return b_->spec().fused_attention
               ? b_->Other(name, rows, ElementFormat::kFp32)
               : b_->Half(name, rows * b_->sizes().sequence_length);
  }

  TensorView FeedForward() {
    const StageSizes& sizes = b_->sizes();
    pre_activation_ = b_->Half(Named("pre-activation"), tokens() * into_.out);
    activation_ = b_->Half(Named("activation"), tokens() * sizes.feed_forward);
    if (gated()) {
      b_->LinearForward(into_, y2_, pre_activation_);
      StageOp op = b_->Op(OpKind::kGatedForward, Named("gate"), tokens(),
                          sizes.feed_forward);
      op.inputs = {pre_activation_};
      op.outputs = {activation_};
      b_->Add(StagePass::kForward, std::move(op));
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
    b_->Add(StagePass::kForward, std::move(op));
    return y;
  }

  void FeedForwardBackward() {
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
    b_->Add(StagePass::kBackwardInput, std::move(op));
  }

  // The gradient of what the residual adds: its own without dropout.
  TensorView DropoutBackward(const TensorView& d, const TensorView& mask,
                             const char* part) {
    if (!mask.present()) return d;
    const std::string name = absl::StrCat(name_, " ", part, " dropout dx");
    const TensorView delta = b_->Stream(name);
    StageOp op =
        b_->Op(OpKind::kDropoutBackward, name, tokens(), b_->sizes().hidden);
    op.dropout = b_->spec().dropout;
    op.inputs = {d, mask};
    op.outputs = {delta};
    b_->Add(StagePass::kBackwardInput, std::move(op));
    return delta;
  }

  StageBuilder* b_;
  std::string name_;
  uint64_t seed_;
  Norm norm1_, norm2_;
  Linear qkv_, projection_, into_, out_;
  TensorView y1_, packed_, o_, statistics_, mask1_, y2_, pre_activation_,
      activation_, mask2_;
  TensorView d_out2_, d_into_, d_out1_, d_packed_;
};

class Head {
 public:
  // `table` is the embedding's where it is tied and on this stage.
  Head(StageBuilder* b, std::optional<TensorView> table) : b_(b) {
    const StageSizes& sizes = b->sizes();
    norm_ = MakeNorm(b, "head norm");
    linear_ = {.name = "logits",
               .in = sizes.hidden,
               .out = sizes.vocabulary,
               .weight = table ? *table
                               : b->Parameter(sizes.vocabulary * sizes.hidden),
               .part = KernelPart::kVocabularyProduct,
               .needed = sizes.vocabulary_needed};
  }

  void Forward(const TensorView& x) {
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
    b_->Add(StagePass::kForward, std::move(op), KernelPart::kLoss);
  }

  TensorView BackwardInput() {
    const TensorView dy = b_->Stream("head norm dy");
    b_->LinearBackwardInput(linear_, logits_, dy);
    const TensorView dx = b_->Stream("head dx");
    NormBackward(b_, norm_, dy, {}, dx);
    return dx;
  }

  void BackwardWeight() { b_->LinearBackwardWeight(linear_, logits_, y_); }

 private:
  StageBuilder* b_;
  Norm norm_;
  Linear linear_;
  TensorView y_, logits_;
};

}  // namespace

void AddLayers(StageBuilder* b) {
  const StageSpec& spec = b->spec();
  const StageSizes& sizes = b->sizes();
  StageProgram& program = b->program();
  const int head_layer = static_cast<int>(b->transformer().num_layers()) + 1;
  const int64_t stream = sizes.tokens * sizes.hidden;
  std::optional<Embedding> embedding;
  std::vector<Block> blocks;
  std::optional<Head> head;
  TensorView x;
  if (spec.first_layer == 0) {
    program.tokens = b->Input("tokens", sizes.tokens, ElementFormat::kInt32);
    embedding.emplace(b, program.tokens);
  } else {
    program.input = x.buffer = b->Input("input", stream, spec.format);
  }
  for (int l = spec.first_layer; l < spec.last_layer; ++l) {
    if (l > 0 && l < head_layer) blocks.emplace_back(b, l);
  }
  if (spec.last_layer > head_layer) {
    program.targets = b->Input("targets", sizes.tokens, ElementFormat::kInt32);
    std::optional<TensorView> table;
    if (embedding && b->transformer().tied_embeddings()) {
      table = embedding->table();
    }
    head.emplace(b, table);
  }

  if (embedding) x = embedding->Forward();
  for (Block& block : blocks) x = block.Forward(x);
  TensorView d;
  if (head) {
    head->Forward(x);
    d = head->BackwardInput();
    head->BackwardWeight();
  } else {
    program.output = x.buffer;
    b->MakeOutput(x);
    program.output_gradient = d.buffer =
        b->Input("output gradient", stream, spec.format);
  }
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    d = block->BackwardInput(d);
    block->BackwardWeight();
  }
  if (embedding) {
    embedding->BackwardWeight(d);
  } else {
    program.input_gradient = d.buffer;
    b->MakeOutput(d);
  }
}

}  // namespace weir
