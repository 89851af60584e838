// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "calibrate/device_profile.h"
#include "models/kernels.h"
#include "models/layer_work.h"
#include "models/model.h"

namespace weir {
namespace {

// 10 multiprocessors, tiles of 100, 1e12 FLOP/s reached of 2e12, 1e9 B/s
// reached of 2e9, 1 us per kernel.
DeviceProfile Toy() {
  DeviceProfile profile;
  profile.mutable_num_multiprocessors()->set_value(10);
  profile.mutable_product_efficiency()->set_value(0.5);
  profile.mutable_product_tile()->set_value(100);
  profile.mutable_memory_bytes_per_second()->set_value(2e9);
  profile.mutable_memory_efficiency()->set_value(0.5);
  profile.mutable_kernel_seconds()->set_value(1e-6);
  return profile;
}

constexpr double kPeak = 2e12;

Kernel Product(double batch, double m, double n, double k) {
  Kernel kernel = ProductKernel(batch, m, n, k, 2);
  kernel.bytes = 0;
  return kernel;
}

double Seconds(const Kernel& kernel) {
  return KernelSeconds(Toy(), kPeak, kernel);
}

TEST(KernelSecondsTest, WholeWavesRunAtTheReachableRate) {
  // 2 x 10 tiles on 10 multiprocessors: two full waves.
  EXPECT_NEAR(Seconds(Product(1, 200, 1000, 300)),
              1e-6 + 2.0 * 200 * 1000 * 300 / 1e12, 1e-15);
}

TEST(KernelSecondsTest, LastWaveCostsAsMuchAsAFullOne) {
  // 11 tiles need two waves, the time of 20.
  EXPECT_NEAR(Seconds(Product(1, 100, 1100, 300)),
              1e-6 + 2.0 * 100 * 2000 * 300 / 1e12, 1e-15);
}

TEST(KernelSecondsTest, PartOfATileCostsAWholeOne) {
  // 101 rows are two rows of tiles.
  EXPECT_NEAR(Seconds(Product(1, 101, 500, 300)),
              1e-6 + 2.0 * 200 * 500 * 300 / 1e12, 1e-15);
}

TEST(KernelSecondsTest, NarrowProductsUseNarrowTiles) {
  // 10 tiles of 100 x 40: one wave.
  EXPECT_NEAR(Seconds(Product(1, 1000, 40, 300)),
              1e-6 + 2.0 * 1000 * 40 * 300 / 1e12, 1e-15);
}

TEST(KernelSecondsTest, BatchedProductsShareTheWaves) {
  // 5 products of 2 tiles each: one wave.
  EXPECT_NEAR(Seconds(Product(5, 100, 200, 300)),
              1e-6 + 5 * 2.0 * 100 * 200 * 300 / 1e12, 1e-15);
}

TEST(KernelSecondsTest, MemoryBoundProductsWaitForMemory) {
  Kernel kernel = Product(1, 200, 1000, 300);
  kernel.bytes = 1e6;
  EXPECT_NEAR(Seconds(kernel), 1e-6 + 1e-3, 1e-15);
}

TEST(KernelSecondsTest, MemoryKernelsCostBytesAndTheFixedCost) {
  EXPECT_NEAR(Seconds(MemoryKernel(5e6)), 1e-6 + 5e-3, 1e-15);
  EXPECT_EQ(Seconds(MemoryKernel(0)), 1e-6);
  EXPECT_EQ(Seconds(Kernel()), 1e-6);
}

TEST(KernelSecondsTest, AttentionCostsWhatItPerforms) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::kAttention;
  kernel.flops = 4e9;
  EXPECT_NEAR(Seconds(kernel), 1e-6 + 4e-3, 1e-15);
  kernel.performed_flops = 2e9;
  EXPECT_NEAR(Seconds(kernel), 1e-6 + 2e-3, 1e-15);
  DeviceProfile profile = Toy();
  profile.mutable_attention_efficiency()->set_value(0.25);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel), 1e-6 + 4e-3, 1e-15);
}

// 2 heads of 5, 100 queries: each tile costs 30 keys more in both directions.
TEST(KernelSecondsTest, AttentionPaysARampBesideItsKeys) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::kAttention;
  kernel.batch = 2;
  kernel.m = 100;
  kernel.k = 5;
  kernel.products = 2;
  kernel.performed_flops = 4e6;
  DeviceProfile profile = Toy();
  profile.mutable_attention_efficiency()->set_value(0.25);
  profile.mutable_attention_backward_efficiency()->set_value(0.1);
  profile.mutable_attention_ramp_keys()->set_value(30);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel),
              1e-6 + (4e6 + 2 * 2 * 2 * 100 * 5 * 30) / 0.5e12, 1e-15);
  kernel.products = 5;
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel),
              1e-6 + (4e6 + 2 * 5 * 2 * 100 * 5 * 30) / 0.2e12, 1e-15);
}

TEST(KernelSecondsTest, NormsHaveTheirOwnRate) {
  DeviceProfile profile = Toy();
  const Kernel norm = MemoryKernel(5e6, KernelPart::kNorm);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, norm), 1e-6 + 5e-3, 1e-15);
  profile.mutable_norm_efficiency()->set_value(0.25);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, norm), 1e-6 + 10e-3, 1e-15);
}

TEST(KernelSecondsTest, EveryLaunchCostsTheFixedTime) {
  EXPECT_NEAR(Seconds(MemoryKernel(5e6, KernelPart::kLoss, 6)), 6e-6 + 5e-3,
              1e-15);
}

TEST(KernelSecondsTest, KernelsRunOneAfterTheOther) {
  EXPECT_NEAR(
      KernelSeconds(Toy(), kPeak,
                    std::vector<Kernel>{MemoryKernel(1e6), MemoryKernel(2e6)}),
      2e-6 + 3e-3, 1e-15);
  EXPECT_EQ(KernelSeconds(Toy(), kPeak, std::vector<Kernel>()), 0);
}

TEST(KernelSecondsTest, MoreBytesAreNeverFaster) {
  Kernel kernel = Product(1, 200, 1000, 300);
  double last = 0;
  for (double bytes = 1; bytes < 1e9; bytes *= 3) {
    kernel.bytes = bytes;
    EXPECT_GE(Seconds(kernel), last) << bytes;
    last = Seconds(kernel);
  }
}

TEST(KernelSecondsTest, MoreWorkInAnyDimensionIsNeverFaster) {
  for (int dimension = 0; dimension < 4; ++dimension) {
    double last = 0;
    for (double size = 1; size < 700; ++size) {
      double sizes[] = {3, 130, 170, 50};
      sizes[dimension] = size;
      const double seconds =
          Seconds(Product(sizes[0], sizes[1], sizes[2], sizes[3]));
      EXPECT_GE(seconds, last * (1 - 1e-12)) << dimension << " " << size;
      last = seconds;
    }
  }
}

TEST(KernelSecondsTest, NothingBeatsTheReachableRate) {
  for (double m : {1.0, 99.0, 100.0, 101.0, 1234.0}) {
    for (double n : {1.0, 64.0, 100.0, 777.0, 5000.0}) {
      const Kernel kernel = Product(2, m, n, 64);
      EXPECT_GE(Seconds(kernel), kernel.flops / 1e12);
    }
  }
}

// A training step on one GPU, bottom up: products, element-wise kernels, and
// an Adam step that moves 30 bytes per parameter.
struct Step {
  const char* device;
  uint32_t layers, hidden, heads, sequence_length;
  int batch;
  uint32_t vocabulary;
  Recompute recompute;
  double published_tflops;  // with recomputation counted
};

double Tflops(const Step& step) {
  Model model;
  Transformer& transformer = *model.mutable_transformer();
  transformer.set_num_layers(step.layers);
  transformer.set_hidden_size(step.hidden);
  transformer.set_num_heads(step.heads);
  transformer.set_num_kv_heads(step.heads);
  transformer.set_head_size(step.hidden / step.heads);
  transformer.set_feed_forward_size(4 * step.hidden);
  transformer.set_vocabulary_size(step.vocabulary);
  transformer.set_num_positions(step.sequence_length);
  transformer.set_attention_bias(true);
  transformer.set_attention_output_bias(true);
  transformer.set_feed_forward_bias(true);
  transformer.set_tied_embeddings(true);
  transformer.set_causal(true);
  WorkSpec spec;
  spec.microbatch_size = step.batch;
  spec.sequence_length = static_cast<int>(step.sequence_length);
  spec.dropout = true;
  spec.recompute = step.recompute;
  const DeviceProfile profile = *LoadDeviceProfile(step.device);
  const double peak = *PeakFlops(profile, "fp16");
  const std::vector<LayerWork> layers = LayersOf(model, spec);
  double flops = ModelFlops(layers, 1);
  double seconds =
      KernelSeconds(profile, peak, MemoryKernel(30 * CountParameters(model)));
  for (const LayerWork& layer : layers) {
    for (const auto* kernels : {&layer.forward, &layer.backward_input,
                                &layer.backward_weight, &layer.recompute}) {
      seconds += KernelSeconds(profile, peak, *kernels);
    }
    for (const Kernel& kernel : layer.recompute) flops += kernel.flops;
  }
  return flops / seconds / 1e12;
}

// Megatron-LM README of 2020 (tables.tex of github.com/msr-fiddle/pipedream,
// branch pipedream_2bw): GPT of 1.16 billion parameters on one GPU.
TEST(BottomUpTest, SingleGpuMegatronIsWithinAnEighth) {
  for (const Step& step : {Step{"v100-sxm2-32gb", 24, 1920, 15, 1024, 8, 51200,
                                Recompute::kFull, 71.9},
                           Step{"a100-sxm-40gb", 24, 1920, 15, 1024, 16, 51200,
                                Recompute::kFull, 149.8}}) {
    EXPECT_NEAR(Tflops(step) / step.published_tflops, 1, 0.125) << step.device;
  }
}

// Narayanan et al. 2021 (PipeDream-2BW): GPT of 355 million parameters on one
// V100; the batch is not said.
TEST(BottomUpTest, SingleV100Of2BWIsWithinAFifth) {
  for (int batch : {4, 8}) {
    const Step step{"v100-sxm2-16gb", 24, 1024, 16, 512, batch, 50257,
                    Recompute::kNone, 45};
    EXPECT_NEAR(Tflops(step) / step.published_tflops, 1, 0.2) << batch;
  }
}

}  // namespace
}  // namespace weir
