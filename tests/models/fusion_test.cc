// SPDX-License-Identifier: Apache-2.0
// Bytes saved by each fusion, counted pass by pass (see the table in
// docs/cost-model.md).
#include <gtest/gtest.h>

#include "models/layer_work.h"
#include "models/model.h"
#include "tests/models/gpt.h"

namespace weir::models::fusion_test {

constexpr double kAs2b = 16.0 * 512 * 512 * 4;
constexpr double kSbh = 512.0 * 4 * 1024;

struct Traffic {
  double bytes = 0;
  int launches = 0;
};

Traffic Of(const std::vector<Kernel>& kernels, KernelPart part) {
  Traffic traffic;
  for (const Kernel& kernel : kernels) {
    if (kernel.part != part || kernel.kind != Kernel::Kind::kMemory) continue;
    traffic.bytes += kernel.bytes;
    traffic.launches += kernel.launches;
  }
  return traffic;
}

LayerWork Block(const WorkSpec& spec) {
  return LayersOf(ModelOf(Gpt()), spec)[1];
}

WorkSpec Spec() {
  WorkSpec spec = SpecOf(Gpt());
  spec.dropout = true;
  return spec;
}

TEST(FusionTest, FusedSoftmaxReadsAndWritesTheScoresOnce) {
  const LayerWork block = Block(Spec());
  EXPECT_SAME(Of(block.forward, KernelPart::kSoftmax).bytes, 4 * kAs2b);
  EXPECT_SAME(Of(block.backward_input, KernelPart::kSoftmax).bytes, 6 * kAs2b);
}

// Widen 6, scale 8, mask 9, softmax 8, narrow 6; backward 6 + 12 + 9 + 8 + 6.
TEST(FusionTest, UnfusedSoftmaxPassesFiveTimes) {
  WorkSpec spec = Spec();
  spec.fused_softmax = false;
  const LayerWork block = Block(spec);
  const Traffic forward = Of(block.forward, KernelPart::kSoftmax);
  EXPECT_SAME(forward.bytes, 37 * kAs2b);
  EXPECT_EQ(forward.launches, 5);
  EXPECT_SAME(Of(block.backward_input, KernelPart::kSoftmax).bytes, 41 * kAs2b);
  // The output is kept in fp32: 5as^2b becomes 7.
  EXPECT_SAME(block.stash_bytes - Block(Spec()).stash_bytes, 2 * kAs2b);
}

// Bias and GELU: 2 x 2 more bytes for 4h elements in each pass.
TEST(FusionTest, UnfusedGeluPassesOnceMore) {
  WorkSpec spec = Spec();
  const Traffic fused = Of(Block(spec).forward, KernelPart::kElementwise);
  spec.fused_bias_gelu = false;
  const Traffic apart = Of(Block(spec).forward, KernelPart::kElementwise);
  EXPECT_SAME(apart.bytes - fused.bytes, 4 * 4 * kSbh);
  EXPECT_EQ(apart.launches, fused.launches + 1);
}

// Bias 4 and dropout 5 bytes in separate passes, instead of the mask's 1 in
// one.
TEST(FusionTest, UnfusedResidualPassesTwiceMore) {
  WorkSpec spec = Spec();
  const Traffic fused = Of(Block(spec).forward, KernelPart::kElementwise);
  spec.fused_bias_dropout_add = false;
  const Traffic apart = Of(Block(spec).forward, KernelPart::kElementwise);
  EXPECT_SAME(apart.bytes - fused.bytes, 2 * (4 + 5 - 1) * kSbh);
  EXPECT_EQ(apart.launches, fused.launches + 4);
}

// The GEMM writes a separate tensor, which is read again and added: 2 + 2 more
// bytes per weight.
TEST(FusionTest, UnfusedGradientAccumulationPassesOnceMore) {
  WorkSpec spec = Spec();
  const auto bytes = [&] {
    double sum = 0;
    for (const Kernel& kernel : Block(spec).backward_weight)
      sum += kernel.bytes;
    return sum;
  };
  const double fused = bytes();
  spec.fused_gradient_accumulation = false;
  EXPECT_SAME(bytes() - fused, (2 + 2) * 12.0 * 1024 * 1024);
}

TEST(FusionTest, UnfusedLossWidensAndPassesFiveTimes) {
  WorkSpec spec = Spec();
  const double logits = 512.0 * 4 * 51200;
  const auto loss = [&] {
    return Of(LayersOf(ModelOf(Gpt()), spec).back().forward, KernelPart::kLoss);
  };
  EXPECT_SAME(loss().bytes, (6 + 32) * logits);
  EXPECT_EQ(loss().launches, 6);
  spec.fused_cross_entropy = true;
  EXPECT_SAME(loss().bytes, 8 * logits);
}

TEST(FusionTest, VocabularyIsPaddedButNotCounted) {
  const Gpt gpt = {.V = 50257};
  WorkSpec spec = SpecOf(gpt);
  spec.tensor_parallel = 2;
  const double flops = ModelFlops(LayersOf(ModelOf(gpt), spec), 2);
  spec.vocabulary_multiple = 128;
  const std::vector<LayerWork> layers = LayersOf(ModelOf(gpt), spec);
  EXPECT_SAME(ModelFlops(layers, 2), flops);
  EXPECT_EQ(layers.back().shared_parameters, 50432.0 / 2 * 1024);
  EXPECT_EQ(layers.front().parameters, 50432.0 / 2 * 1024 + 512 * 1024);
}

}  // namespace weir::models::fusion_test
