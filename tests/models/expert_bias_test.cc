// SPDX-License-Identifier: Apache-2.0
// Tests of experts with biases and clamped activations whose passes are not
// fused (Megatron-Core's TEGroupedMLP).
#include <gtest/gtest.h>

#include <vector>

#include "models/layer_work.h"
#include "models/model.h"
#include "models/recompute.h"
#include "tests/models/gpt.h"

namespace weir::models::expert_bias_test {

// gpt-oss-120b: 4 of 128 experts for each token.
constexpr double kHidden = 2880, kWidth = 2880, kTokens = 4096, kCopies = 4;
constexpr int kExperts = 128;

WorkSpec Spec() {
  WorkSpec spec;
  spec.sequence_length = 4096;
  spec.flash_attention = true;
  spec.expert_parallel = 8;
  return spec;
}

LayerWork Block(const WorkSpec& spec) {
  return LayersOf(*LoadModel("gpt-oss-120b"), spec)[1];
}

struct Traffic {
  double bytes = 0;
  int launches = 0;
};

Traffic Of(const std::vector<Kernel>& kernels) {
  Traffic traffic;
  for (const Kernel& kernel : kernels) {
    if (kernel.kind != Kernel::Kind::kMemory) continue;
    traffic.bytes += kernel.bytes;
    traffic.launches += kernel.launches;
  }
  return traffic;
}

Traffic Backward(const LayerWork& layer) {
  const Traffic input = Of(layer.backward_input);
  const Traffic weight = Of(layer.backward_weight);
  return {input.bytes + weight.bytes, input.launches + weight.launches};
}

// Product 2, sum 4 + 2, join 2 + 2; backward twice product 4 and its sum 2,
// join 4, instead of the 2 of a reduction.
TEST(ExpertBiasTest, BiasesPassOnceForEachExpert) {
  WorkSpec spec = Spec();
  const LayerWork fused = Block(spec);
  spec.fused_expert_bias = false;
  const LayerWork apart = Block(spec);
  const double outputs = kCopies * kTokens * kHidden;
  EXPECT_SAME(Of(apart.forward).bytes - Of(fused.forward).bytes, 12 * outputs);
  EXPECT_SAME(Backward(apart).bytes - Backward(fused).bytes,
              (16 - 2) * outputs);
  EXPECT_EQ(Of(apart.forward).launches,
            Of(fused.forward).launches + 2 * kExperts / 8 + 1);
  EXPECT_EQ(Backward(apart).launches,
            Backward(fused).launches + 4 * kExperts / 8);
  EXPECT_SAME(apart.stash_bytes, fused.stash_bytes);
}

// Clamp and join read and write both inputs; in the backward the clamp also
// reads its input. The joined copy is saved.
TEST(ExpertBiasTest, ClampsPassTwice) {
  WorkSpec spec = Spec();
  const LayerWork fused = Block(spec);
  spec.fused_clamp = false;
  const LayerWork apart = Block(spec);
  const double inputs = 2 * kCopies * kTokens * kWidth;
  EXPECT_SAME(Of(apart.forward).bytes - Of(fused.forward).bytes, 8 * inputs);
  EXPECT_SAME(Backward(apart).bytes - Backward(fused).bytes, 10 * inputs);
  EXPECT_SAME(apart.stash_bytes - fused.stash_bytes, 2 * inputs);
}

// Recomputation of the activation repeats the clamp, but no bias, and saves
// neither the joined copy nor the output.
TEST(ExpertBiasTest, TheActivationIsRecomputedWithoutTheBias) {
  WorkSpec spec = Spec();
  spec.fused_expert_bias = false;
  spec.fused_clamp = false;
  const LayerWork kept = Block(spec);
  Recomputation activation;
  ASSERT_TRUE(ParseRecomputation("selective:moe_act", &activation));
  spec.recompute = Recompute(activation);
  const LayerWork repeated = Block(spec);
  const double outputs = kCopies * kTokens * kWidth;
  EXPECT_SAME(Of(repeated.recompute).bytes, (2 * 8 + 6) * outputs);
  EXPECT_SAME(kept.stash_bytes - repeated.stash_bytes, 3 * 2 * outputs);
}

TEST(ExpertBiasTest, ExpertsAreLaunchedOneByOne) {
  WorkSpec spec = Spec();
  spec.launches_each_expert = true;
  int num_gemms = 0;
  for (const Kernel& kernel : Block(spec).forward) {
    if (kernel.variant != Kernel::Variant::kGrouped) continue;
    EXPECT_EQ(kernel.launches, kExperts / 8);
    ++num_gemms;
  }
  EXPECT_EQ(num_gemms, 2);
  spec.launches_each_expert = false;
  for (const Kernel& kernel : Block(spec).forward) {
    if (kernel.kind != Kernel::Kind::kGemm) continue;
    EXPECT_EQ(kernel.launches, 1);
  }
}

}  // namespace weir::models::expert_bias_test
