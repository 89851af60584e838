// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/program_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::sim::program_memory_test {

using models::Kernel;
using models::KernelPart;
using models::LayerRole;

// A layer of 100 parameters whose largest matrix has 40, and an embedding of
// 60.
models::LayerList Layers() {
  models::LayerWork block;
  block.name = "block";
  block.role = LayerRole::kBlock;
  block.parameters = 100;
  Kernel gemm;
  gemm.kind = Kernel::Kind::kGemm;
  gemm.part = KernelPart::kFeedForwardGemm;
  gemm.batch = 1;
  gemm.m = 7;
  gemm.n = 4;
  gemm.k = 10;
  block.forward.push_back(gemm);
  gemm.part = KernelPart::kAttentionGemm;  // no weights
  gemm.n = 1000;
  block.forward.push_back(gemm);
  models::LayerWork embedding;
  embedding.name = "embedding";
  embedding.role = LayerRole::kEmbedding;
  embedding.parameters = 60;
  return std::vector<models::LayerWork>{embedding, block};
}

struct Case {
  Precision precision = MIXED_FP16;
  bool distributed = false, fp32_gradients = false, flattens = true;
  int replicas = 1;
  double bucket = 1e9;
  bool widens = true;
  int first = 0;
};

StepBuffers BuffersOf(const Case& c) {
  Training training;
  training.set_precision(c.precision);
  training.set_distributed_optimizer(c.distributed);
  training.set_fp32_gradients(c.fp32_gradients);
  Runtime runtime;
  runtime.set_flattens_gradients(c.flattens);
  runtime.set_widens_gradients(c.widens);
  runtime.set_flat_bucket_elements(c.bucket);
  StageParameters parameters;
  const double elements = c.first == 0 ? 160 : 100;
  parameters.weight_bytes = 2 * elements;
  parameters.gradient_bytes = (c.fp32_gradients ? 4 : 2) * elements;
  parameters.fp32_bytes = 4 * elements;
  const double part = c.distributed ? 1.0 / c.replicas : 1;
  return StepBuffersOf(Layers(), c.first, 2, training, runtime, c.replicas,
                       part, parameters);
}

TEST(StepBuffersTest, WidenedGradientsOfMegatron) {
  const StepBuffers one = BuffersOf({.flattens = false});
  EXPECT_EQ(one.bytes, 4 * 160);
  EXPECT_EQ(one.separate_bytes, 4 * 160);
  EXPECT_EQ(BuffersOf({.flattens = false, .widens = false}).bytes, 0);
  EXPECT_EQ(BuffersOf({.fp32_gradients = true, .flattens = false}).bytes, 0);
  EXPECT_EQ(BuffersOf({.precision = FP32}).bytes, 0);
}

// DeepSpeed without ZeRO: an fp32 copy of every gradient, then a flat one.
TEST(StepBuffersTest, FlatGradientsOfAllParameters) {
  const StepBuffers one = BuffersOf({});
  EXPECT_EQ(one.bytes, 8 * 160);
  EXPECT_EQ(one.separate_bytes, 4 * 160);
  // Gradients are also reduced in flat buckets.
  const StepBuffers two = BuffersOf({.replicas = 2, .bucket = 50});
  EXPECT_EQ(two.bytes, 8 * 160);
  EXPECT_EQ(two.separate_bytes, 4 * 160 + 2 * 50);
}

// ZeRO-1: the shard in 16 and in 32 bits; buckets of both directions.
TEST(StepBuffersTest, FlatGradientsOfAShard) {
  const StepBuffers buffers =
      BuffersOf({.distributed = true, .replicas = 4, .bucket = 50});
  EXPECT_EQ(buffers.bytes, 6 * 40);
  EXPECT_EQ(buffers.separate_bytes, 2 * 40 + 2 * 50 + 2 * 50);
  // No bucket is larger than the stage.
  EXPECT_EQ(BuffersOf({.distributed = true, .replicas = 4}).bytes, 2 * 160);
}

// fp32 gradients are flat already: one 16-bit gradient at a time is widened.
TEST(StepBuffersTest, OneGradientAtATime) {
  const Case c = {.precision = MIXED_BF16,
                  .distributed = true,
                  .fp32_gradients = true,
                  .replicas = 2,
                  .bucket = 50};
  EXPECT_EQ(BuffersOf(c).bytes, 4 * 60);
  Case block = c;
  block.first = 1;
  EXPECT_EQ(BuffersOf(block).bytes, 4 * 40);
  block.bucket = 90;
  EXPECT_EQ(BuffersOf(block).bytes, 2 * 90);
}

TEST(KeptGradientsTest, OnlyBesideFp32Gradients) {
  Runtime runtime;
  Training training;
  training.set_precision(MIXED_BF16);
  training.set_fp32_gradients(true);
  EXPECT_FALSE(KeepsLowPrecisionGradients(runtime, training));
  runtime.set_keeps_low_precision_gradients(true);
  EXPECT_TRUE(KeepsLowPrecisionGradients(runtime, training));
  training.set_fp32_gradients(false);
  EXPECT_FALSE(KeepsLowPrecisionGradients(runtime, training));
}

TEST(CommunicatorBytesTest, CountsWhatTheRuntimeStates) {
  Costs costs;
  costs.communication_buffer_bytes = 7;
  const calibrate::CommunicatorCounts counts = {
      .num_in_node = 1, .num_across_nodes = 2, .num_pair_peers = 2};
  EXPECT_EQ(CommunicatorBytes(costs, costs, counts, 1), 0);
  EXPECT_EQ(CommunicatorBytes(costs, costs, counts, 8), 7);
  costs.communicator_sizes = {.bytes = 100, .pair_bytes = 10, .num_others = 2};
  EXPECT_EQ(CommunicatorBytes(costs, costs, counts, 8), 5 * 100 + 2 * 10);
  EXPECT_EQ(CommunicatorBytes(costs, costs, counts, 1), 0);
}

}  // namespace weir::sim::program_memory_test
