// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/optimizer_step.h"

#include <gtest/gtest.h>

namespace weir::sim::optimizer_step_test {

// One parameter with Adam.
StageParameters Parameter(Precision precision, bool fp32_gradients) {
  StageParameters parameters;
  const bool mixed = precision != FP32;
  parameters.weight_bytes = mixed ? 2 : 4;
  parameters.gradient_bytes = mixed && !fp32_gradients ? 2 : 4;
  parameters.optimizer_state_bytes = mixed ? 12 : 8;
  parameters.fp32_bytes = 4;
  parameters.stash_bytes = 4;
  return parameters;
}

struct Case {
  Precision precision = MIXED_BF16;
  bool fp32_gradients = false;
  Runtime runtime = {};
  int num_versions = 1;
};

double BytesOf(const Case& c) {
  Training training;
  training.set_precision(c.precision);
  training.set_fp32_gradients(c.fp32_gradients);
  return OptimizerStepBytes(Parameter(c.precision, c.fp32_gradients), training,
                            c.runtime, c.num_versions);
}

// Gradient 2, states and master weights read and written 24, weight 2.
constexpr double kMixed = 28;

TEST(OptimizerStepTest, WideningWritesAndReadsAnFp32Copy) {
  Case c;
  EXPECT_EQ(BytesOf(c), kMixed);
  c.runtime.set_widens_gradients(true);
  EXPECT_EQ(BytesOf(c), kMixed + 4 + 4);
  c.fp32_gradients = true;
  EXPECT_EQ(BytesOf(c), kMixed + 2);
  c.precision = FP32;
  EXPECT_EQ(BytesOf(c), 4 + 2 * 8 + 2 * 4);
}

TEST(OptimizerStepTest, TheNormReadsTheGradientsThatTheStepReads) {
  Case c;
  c.runtime.set_measures_gradient_norm(true);
  EXPECT_EQ(BytesOf(c), kMixed + 2);
  c.runtime.set_widens_gradients(true);
  EXPECT_EQ(BytesOf(c), kMixed + 8 + 4);
}

TEST(OptimizerStepTest, ScalingReadsAndWritesTheGradientsThatTheStepReads) {
  Case c;
  c.runtime.set_scales_gradients(true);
  EXPECT_EQ(BytesOf(c), kMixed + 2 + 2);
  c.runtime.set_widens_gradients(true);
  EXPECT_EQ(BytesOf(c), kMixed + 8 + 4 + 4);
}

// bf16 has no loss scale.
TEST(OptimizerStepTest, OnlyFp16Unscales) {
  Case c;
  c.runtime.set_unscales_gradients(true);
  EXPECT_EQ(BytesOf(c), kMixed);
  c.precision = MIXED_FP16;
  EXPECT_EQ(BytesOf(c), kMixed + 2 + 2);
}

TEST(OptimizerStepTest, CopyingMasterWeightsReadsThemOnceMore) {
  Case c;
  c.runtime.set_copies_master_weights(true);
  EXPECT_EQ(BytesOf(c), kMixed + 4);
  c.precision = FP32;
  EXPECT_EQ(BytesOf(c), 4 + 2 * 8 + 2 * 4);
}

TEST(OptimizerStepTest, ClearingWritesTheGradients) {
  Case c;
  c.runtime.set_clears_gradients(true);
  EXPECT_EQ(BytesOf(c), kMixed + 2);
}

// 4 bytes of a stashed version are read and written.
TEST(OptimizerStepTest, KeepingAVersionCopiesItUnlessTheNewOneIsElsewhere) {
  Case c;
  c.num_versions = 2;
  EXPECT_EQ(BytesOf(c), kMixed + 4 + 4);
  c.runtime.set_writes_new_versions(true);
  EXPECT_EQ(BytesOf(c), kMixed);
}

}  // namespace weir::sim::optimizer_step_test
