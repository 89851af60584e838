// SPDX-License-Identifier: Apache-2.0
// Compares activation memory and FLOP of a GPT with formulas in the literature.
#include <gtest/gtest.h>

#include "models/layer_work.h"
#include "models/model.h"
#include "tests/models/gpt.h"

namespace weir::models::activation_test {

LayerWork BlockOf(const Gpt& gpt, const WorkSpec& spec) {
  return LayersOf(ModelOf(gpt), spec)[1];
}

// Korthikanti et al. 2022, equations 1 to 4 and table 2.
class ActivationTest : public testing::TestWithParam<Gpt> {
 protected:
  void SetUp() override {
    spec_ = SpecOf(GetParam());
    spec_.dropout = true;
  }
  double Stash() { return BlockOf(GetParam(), spec_).stash_bytes; }
  double sbh() { return GetParam().s * GetParam().b * GetParam().h; }
  // 5as/h
  double Core() { return 5 * GetParam().a * GetParam().s / GetParam().h; }

  WorkSpec spec_;
};

TEST_P(ActivationTest, OneGpuKeeps34Plus5asOverH) {
  EXPECT_SAME(Stash(), sbh() * (34 + Core()));
}

TEST_P(ActivationTest, TensorParallelDividesAllBut10) {
  for (double t : {2, 4, 8}) {
    spec_.tensor_parallel = static_cast<int>(t);
    EXPECT_SAME(Stash(), sbh() * (10 + 24 / t + Core() / t));
  }
}

TEST_P(ActivationTest, SequenceParallelDividesAll) {
  for (double t : {2, 4, 8}) {
    spec_.tensor_parallel = static_cast<int>(t);
    spec_.sequence_parallel = true;
    EXPECT_SAME(Stash(), sbh() * (34 + Core()) / t);
  }
}

TEST_P(ActivationTest, SelectiveRecomputationDropsTheAttentionCore) {
  spec_.recompute = RECOMPUTE_SELECTIVE;
  const LayerWork block = BlockOf(GetParam(), spec_);
  EXPECT_SAME(block.stash_bytes, sbh() * 34);
  EXPECT_SAME(block.recompute_scratch_bytes, sbh() * Core());
  const Gpt& gpt = GetParam();
  EXPECT_SAME(Flops(block.recompute), 4 * gpt.b * gpt.s * gpt.s * gpt.h);
  spec_.tensor_parallel = 4;
  spec_.sequence_parallel = true;
  EXPECT_SAME(Stash(), sbh() * 34 / 4);
}

TEST_P(ActivationTest, FullRecomputationKeepsTheInput) {
  spec_.recompute = RECOMPUTE_FULL;
  const LayerWork block = BlockOf(GetParam(), spec_);
  EXPECT_SAME(block.stash_bytes, sbh() * 2);
  EXPECT_SAME(block.stash_bytes + block.recompute_scratch_bytes,
              sbh() * (34 + Core()));
  EXPECT_EQ(Flops(block.recompute), Flops(block.forward));
}

TEST_P(ActivationTest, FusedAttentionKeepsOneStatisticPerRow) {
  spec_.flash_attention = true;
  const Gpt& gpt = GetParam();
  EXPECT_SAME(Stash(), sbh() * 34 + 4 * gpt.a * gpt.s * gpt.b);
}

TEST_P(ActivationTest, FusedAttentionLeavesNothingToSelect) {
  spec_.flash_attention = true;
  const double none = Stash();
  spec_.recompute = RECOMPUTE_SELECTIVE;
  EXPECT_EQ(Stash(), none);
  EXPECT_TRUE(BlockOf(GetParam(), spec_).recompute.empty());
}

TEST_P(ActivationTest, WithoutDropoutTheMasksAreGone) {
  spec_.dropout = false;
  const Gpt& gpt = GetParam();
  EXPECT_SAME(Stash(), sbh() * (32 + 2 * gpt.a * gpt.s / gpt.h));
}

TEST_P(ActivationTest, WiderElementsScaleAllButTheMasks) {
  spec_.bytes_per_element = 4;
  const Gpt& gpt = GetParam();
  // 34 = 2 x 16 + 2 masks, 5 = 2 x 2 + 1 mask.
  EXPECT_SAME(Stash(), sbh() * (66 + 9 * gpt.a * gpt.s / gpt.h));
}

// Qi et al. 2023: M_W = 32 sbh.
TEST_P(ActivationTest, BackwardWeightWaitsFor32sbh) {
  EXPECT_SAME(BlockOf(GetParam(), spec_).weight_gradient_stash_bytes,
              sbh() * 32);
}

TEST_P(ActivationTest, HeadKeepsItsInputsAndTheLogits) {
  const Gpt& gpt = GetParam();
  const LayerWork head = LayersOf(ModelOf(gpt), spec_).back();
  // Korthikanti et al. 2022, section 4.3: 4sbh (1 + V/h).
  EXPECT_SAME(head.stash_bytes, 4 * sbh() * (1 + gpt.V / gpt.h));
}

// Narayanan et al. 2021 (SC21), with and without recomputation.
TEST_P(ActivationTest, FlopAreMegatrons) {
  const Gpt& gpt = GetParam();
  for (bool fused : {false, true}) {
    for (double t : {1, 2, 4}) {
      spec_.flash_attention = fused;
      spec_.tensor_parallel = static_cast<int>(t);
      spec_.recompute = RECOMPUTE_FULL;
      const std::vector<LayerWork> layers = LayersOf(ModelOf(gpt), spec_);
      const double work = gpt.b * gpt.s * gpt.l * gpt.h * gpt.h;
      EXPECT_SAME(
          ModelFlops(layers, static_cast<int>(t)),
          72 * work * (1 + gpt.s / (6 * gpt.h) + gpt.V / (12 * gpt.h * gpt.l)));
      double again = 0;
      for (const LayerWork& layer : layers) again += t * Flops(layer.recompute);
      EXPECT_SAME(
          ModelFlops(layers, static_cast<int>(t)) + again,
          96 * work * (1 + gpt.s / (6 * gpt.h) + gpt.V / (16 * gpt.l * gpt.h)));
    }
  }
}

TEST_P(ActivationTest, LayersAddUpToTheModelsParameters) {
  const Model model = ModelOf(GetParam());
  const std::vector<LayerWork> layers = LayersOf(model, spec_);
  const int n = static_cast<int>(layers.size());
  EXPECT_EQ(StageParameters(layers, 0, n), CountParameters(model));
  EXPECT_EQ(StageParameters(layers, 0, n - 1) +
                StageParameters(layers, n - 1, n) - GetParam().V * GetParam().h,
            CountParameters(model));
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, ActivationTest,
    testing::Values(
        Gpt{}, Gpt{.a = 96, .h = 12288, .l = 96, .s = 2048, .b = 1},
        Gpt{.a = 8, .h = 512, .l = 1, .V = 1000, .s = 128, .b = 7}));

}  // namespace weir::models::activation_test
