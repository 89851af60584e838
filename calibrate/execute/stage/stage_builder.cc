// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/stage/stage_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/shape.h"

namespace weir::calibrate {
namespace {

constexpr int kWeightsBuffer = 0, kGradientsBuffer = 1, kStateBuffer = 2;
// In elements: every tensor begins at a multiple of 16 bytes, also in the
// 16-bit format.
constexpr int64_t kAlignment = 8;

int64_t RoundUp(int64_t n) {
  return (n + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

StageSizes SizesOf(const Transformer& transformer,
                   const models::WorkSpec& spec) {
  const models::Shape shape = models::ShapeOf(transformer, spec);
  StageSizes sizes;
  sizes.sequences = spec.microbatch_size;
  sizes.sequence_length = spec.sequence_length;
  sizes.tokens = sizes.sequences * sizes.sequence_length;
  sizes.hidden = transformer.hidden_size();
  sizes.query = static_cast<int64_t>(shape.query);
  sizes.key_value = static_cast<int64_t>(shape.key_value);
  sizes.feed_forward = static_cast<int64_t>(shape.feed_forward);
  sizes.vocabulary = static_cast<int64_t>(shape.vocabulary);
  sizes.head_size = static_cast<int>(transformer.head_size());
  sizes.heads = static_cast<int>(shape.heads);
  sizes.kv_heads = static_cast<int>(sizes.key_value / sizes.head_size);
  sizes.projection_needed = (shape.query + 2 * shape.key_value_share) /
                            static_cast<double>(sizes.packed());
  sizes.vocabulary_needed = shape.vocabulary_needed;
  return sizes;
}

StageBuilder::StageBuilder(const Transformer& transformer,
                           const StageSpec& spec)
    : transformer_(transformer),
      spec_(spec),
      sizes_(SizesOf(transformer, spec.work)) {
  AddBuffer({"weights", BufferClass::kWeights, spec.format});
  AddBuffer({"gradients", BufferClass::kGradients, ElementFormat::kFp32});
  AddBuffer(
      {"optimizer state", BufferClass::kOptimizerState, ElementFormat::kFp32});
}

TensorView StageBuilder::AddBuffer(StageBuffer buffer) {
  program_.buffers.push_back(std::move(buffer));
  return {.buffer = static_cast<int>(program_.buffers.size()) - 1};
}

TensorView StageBuilder::Parameter(int64_t num_elements) {
  const TensorView view{.buffer = kWeightsBuffer, .offset = parameters_end_};
  parameters_end_ += RoundUp(num_elements);
  program_.num_parameters += num_elements;
  return view;
}

TensorView StageBuilder::GradientOf(const TensorView& parameter) {
  if (!parameter.present()) return {};
  return {.buffer = kGradientsBuffer, .offset = parameter.offset};
}

TensorView StageBuilder::Half(const std::string& name, int64_t num_elements) {
  return Other(name, num_elements, spec_.format);
}

TensorView StageBuilder::Other(const std::string& name, int64_t num_elements,
                               ElementFormat format) {
  return AddBuffer({name, BufferClass::kScratch, format, num_elements});
}

TensorView StageBuilder::Stream(const std::string& name) {
  return Half(name, sizes_.tokens * sizes_.hidden);
}

int StageBuilder::Input(const std::string& name, int64_t num_elements,
                        ElementFormat format) {
  return AddBuffer({name, BufferClass::kInput, format, num_elements}).buffer;
}

void StageBuilder::MakeOutput(const TensorView& view) {
  program_.buffers[view.buffer].buffer_class = BufferClass::kOutput;
}

StageOp StageBuilder::Op(OpKind kind, const std::string& name, int64_t rows,
                         int64_t columns) const {
  StageOp op;
  op.kind = kind;
  op.name = name;
  op.rows = rows;
  op.columns = columns;
  op.rms = transformer_.rms_norm();
  op.loss_scale = 1.0F / static_cast<float>(sizes_.tokens);
  op.sequences = sizes_.sequences;
  op.sequence_length = sizes_.sequence_length;
  op.heads = sizes_.heads;
  op.kv_heads = sizes_.kv_heads;
  op.head_size = sizes_.head_size;
  op.causal = transformer_.causal();
  op.fused = spec_.fused_attention;
  return op;
}

void StageBuilder::Add(ProgramPass pass, StageOp op, models::KernelPart part,
                       double needed) {
  op.kernels = KernelsOf(op, spec_.format, part, needed);
  program_.passes[static_cast<int>(pass)].push_back(std::move(op));
}

Linear StageBuilder::MakeLinear(const std::string& name, int64_t in,
                                int64_t out, bool bias,
                                models::KernelPart part) {
  Linear linear{.name = name, .in = in, .out = out};
  linear.weight = Parameter(in * out);
  if (bias) linear.bias = Parameter(out);
  linear.part = part;
  return linear;
}

void StageBuilder::LinearForward(const Linear& linear, const TensorView& x,
                                 const TensorView& y, const TensorView& aux) {
  StageOp op = Op(OpKind::kGemm, linear.name, sizes_.tokens, linear.out);
  op.inner = linear.in;
  op.transpose_b = true;
  op.epilogue = aux.present()           ? Epilogue::kBiasGelu
                : linear.bias.present() ? Epilogue::kBias
                                        : Epilogue::kNone;
  op.inputs = {x, linear.weight, linear.bias};
  op.outputs = {y, aux};
  Add(ProgramPass::kForward, std::move(op), linear.part, linear.needed);
}

void StageBuilder::LinearBackwardInput(const Linear& linear,
                                       const TensorView& dy,
                                       const TensorView& dx,
                                       const TensorView& aux) {
  StageOp op = Op(OpKind::kGemm, absl::StrCat(linear.name, " dx"),
                  sizes_.tokens, linear.in);
  op.inner = linear.out;
  if (aux.present()) op.epilogue = Epilogue::kGeluGradient;
  op.inputs = {dy, linear.weight, aux};
  op.outputs = {dx, {}};
  Add(ProgramPass::kBackwardInput, std::move(op), linear.part, linear.needed);
}

void StageBuilder::LinearBackwardWeight(const Linear& linear,
                                        const TensorView& dy,
                                        const TensorView& x) {
  StageOp op = Op(OpKind::kGemm, absl::StrCat(linear.name, " dw"), linear.out,
                  linear.in);
  op.inner = sizes_.tokens;
  op.transpose_a = op.accumulate = true;
  op.inputs = {dy, x, {}};
  op.outputs = {GradientOf(linear.weight), {}};
  Add(ProgramPass::kBackwardWeight, std::move(op), linear.part, linear.needed);
  if (!linear.bias.present()) return;
  op = Op(OpKind::kBiasGradient, absl::StrCat(linear.name, " db"),
          sizes_.tokens, linear.out);
  op.inputs = {dy};
  op.outputs = {GradientOf(linear.bias)};
  Add(ProgramPass::kBackwardWeight, std::move(op));
}

StageProgram StageBuilder::Finish() {
  const int64_t n = parameters_end_;
  program_.buffers[kWeightsBuffer].num_elements = n;
  program_.buffers[kGradientsBuffer].num_elements = n;
  program_.buffers[kStateBuffer].num_elements = 3 * n;
  if (n > 0) {
    StageOp adam = Op(OpKind::kAdam, "adam", 1, n);
    adam.inputs = {{.buffer = kGradientsBuffer},
                   {.buffer = kStateBuffer},
                   {.buffer = kStateBuffer, .offset = n},
                   {.buffer = kStateBuffer, .offset = 2 * n},
                   {.buffer = kWeightsBuffer}};
    adam.outputs = adam.inputs;
    Add(ProgramPass::kOptimizer, std::move(adam),
        models::KernelPart::kOptimizer);
  }
  SetLifetimes(&program_);
  return std::move(program_);
}

}  // namespace weir::calibrate
