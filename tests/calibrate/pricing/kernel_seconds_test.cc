// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pricing/kernel_seconds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "calibrate/profile/device_profile.h"
#include "models/kernels.h"
#include "models/layer_work.h"
#include "models/linear_recurrence.h"
#include "models/model.h"
#include "models/shape.h"

namespace weir::calibrate::kernel_seconds_test {

// Returns a profile with 10 multiprocessors, 1e12 of 2e12 FLOP/s and 1e9 of 2e9
// B/s reached, and 1 us per kernel.
DeviceProfile Toy() {
  DeviceProfile profile;
  profile.mutable_num_multiprocessors()->set_value(10);
  GemmModel& gemm = *profile.mutable_gemm();
  gemm.mutable_launch_seconds()->set_value(2e-6);
  gemm.mutable_matrix_rate()->set_value(0.625);
  gemm.mutable_sustained_rate()->set_value(0.8);
  gemm.mutable_cache_bytes_per_second()->set_value(1e18);
  gemm.mutable_cache_shares()->set_value(1);
  gemm.mutable_output_bytes_per_second()->set_value(1e18);
  gemm.mutable_memory_rate()->set_value(0.5);
  gemm.mutable_wave_quantization()->set_value(1);
  profile.mutable_memory_bytes_per_second()->set_value(2e9);
  profile.mutable_memory_efficiency()->set_value(0.5);
  profile.mutable_kernel_seconds()->set_value(1e-6);
  return profile;
}

constexpr double kPeak = 2e12;

models::Kernel MakeGemm(double batch, double m, double n, double k) {
  models::Kernel kernel = models::GemmKernel(batch, m, n, k, 2);
  kernel.bytes = 0;
  return kernel;
}

double Seconds(const models::Kernel& kernel) {
  return KernelSeconds(Toy(), kPeak, kernel);
}

// Seconds of a GEMM that fills whole waves, without its bytes.
const double kWaveSeconds = 2.0 * 256 * 128 * 320 * 10 / 1e12;

TEST(KernelSecondsTest, GemmsRunAtTheSustainedRate) {
  // 10 tiles of 256 x 128 on 10 multiprocessors.
  EXPECT_NEAR(Seconds(MakeGemm(1, 512, 640, 320)), 2e-6 + kWaveSeconds, 1e-15);
  EXPECT_NEAR(Seconds(MakeGemm(5, 512, 128, 320)), 2e-6 + kWaveSeconds, 1e-15);
}

TEST(KernelSecondsTest, MemoryBoundGemmsWaitForMemory) {
  models::Kernel kernel = MakeGemm(1, 512, 640, 320);
  kernel.bytes = 1e6;
  EXPECT_NEAR(Seconds(kernel), 2e-6 + 1e-3, 1e-6);
}

TEST(KernelSecondsTest, WhatAnEpilogueMovesDoesNotWidenTheElements) {
  DeviceProfile profile = Toy();
  profile.mutable_gemm()->mutable_cache_bytes_per_second()->set_value(1e10);
  models::Kernel kernel = models::GemmKernel(1, 512, 640, 320, 2);
  profile.mutable_memory_bytes_per_second()->set_value(1e18);
  const double plain = KernelSeconds(profile, kPeak, kernel);
  kernel.bytes *= 1.4;
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel), plain, 1e-3 * plain);
  kernel.bytes *= 2;  // fp32
  EXPECT_GT(KernelSeconds(profile, kPeak, kernel), 1.5 * plain);
}

TEST(KernelSecondsTest, MemoryKernelsCostBytesAndTheFixedCost) {
  EXPECT_NEAR(Seconds(models::MemoryKernel(5e6)), 1e-6 + 5e-3, 1e-15);
  EXPECT_EQ(Seconds(models::MemoryKernel(0)), 1e-6);
  EXPECT_EQ(Seconds(models::Kernel()), 1e-6);
}

TEST(KernelSecondsTest, AttentionCostsWhatItPerforms) {
  models::Kernel kernel;
  kernel.kind = models::Kernel::Kind::kAttention;
  kernel.flops = 4e9;
  EXPECT_NEAR(Seconds(kernel), 1e-6 + 4e-3, 1e-15);
  kernel.performed_flops = 2e9;
  EXPECT_NEAR(Seconds(kernel), 1e-6 + 2e-3, 1e-15);
  DeviceProfile profile = Toy();
  profile.mutable_attention_efficiency()->set_value(0.25);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel), 1e-6 + 4e-3, 1e-15);
}

// 2 heads of size 5, 100 queries: each tile costs 30 more keys in the forward
// and in the backward.
TEST(KernelSecondsTest, AttentionPaysARampBesideItsKeys) {
  models::Kernel kernel;
  kernel.kind = models::Kernel::Kind::kAttention;
  kernel.batch = 2;
  kernel.m = 100;
  kernel.k = 5;
  kernel.num_gemms = 2;
  kernel.performed_flops = 4e6;
  DeviceProfile profile = Toy();
  profile.mutable_attention_efficiency()->set_value(0.25);
  profile.mutable_attention_backward_efficiency()->set_value(0.1);
  profile.mutable_attention_ramp_keys()->set_value(30);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel),
              1e-6 + (4e6 + 2 * 2 * 2 * 100 * 5 * 30) / 0.5e12, 1e-15);
  kernel.num_gemms = 5;
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel),
              1e-6 + (4e6 + 2 * 5 * 2 * 100 * 5 * 30) / 0.2e12, 1e-15);
}

// 10 multiprocessors share 200 queries; a tile of 128 of them, in which each
// query sees all 100 keys, takes 128 / 200 of the whole work of one without a
// mask.
TEST(KernelSecondsTest, TheTailOfAttentionIsItsLongestTile) {
  models::Kernel kernel;
  kernel.kind = models::Kernel::Kind::kAttention;
  kernel.batch = 2;
  kernel.m = kernel.n = 100;
  kernel.k = 5;
  kernel.num_gemms = 2;
  const double unmasked = 2 * 2 * 2 * 100 * 100 * 5;
  DeviceProfile profile = Toy();
  profile.mutable_attention_efficiency()->set_value(0.25);
  profile.mutable_attention_tail()->set_value(0.5);
  for (const double masked : {1.0, 0.5}) {
    kernel.flops = unmasked;
    kernel.performed_flops = masked * unmasked;
    const double tail = 0.5 * 10 * 128 / 200 * unmasked;
    EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel),
                1e-6 + (masked * unmasked + tail) / 0.5e12, 1e-15);
  }
  // A window hides more than half of the keys from nobody.
  kernel.performed_flops = 0.1 * unmasked;
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel),
              1e-6 + (0.1 + 0.5 * 10 * 128 / 200 * 0.2) * unmasked / 0.5e12,
              1e-15);
}

TEST(KernelSecondsTest, LatentAttentionHasFiguresOfItsOwn) {
  models::Kernel kernel;
  kernel.kind = models::Kernel::Kind::kAttention;
  kernel.batch = 2;
  kernel.m = kernel.n = 100;
  kernel.k = 5;
  kernel.num_gemms = 2;
  kernel.performed_flops = 4e6;
  DeviceProfile profile = Toy();
  profile.mutable_attention_efficiency()->set_value(0.25);
  const double plain = KernelSeconds(profile, kPeak, kernel);
  kernel.variant = models::Kernel::Variant::kLatent;
  EXPECT_EQ(KernelSeconds(profile, kPeak, kernel), plain);
  LatentAttentionSpeed& speed = *profile.mutable_latent_attention();
  speed.mutable_efficiency()->set_value(0.1);
  speed.mutable_backward_efficiency()->set_value(0.05);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel), 1e-6 + 4e6 / 0.2e12,
              1e-15);
  kernel.num_gemms = 5;
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel), 1e-6 + 4e6 / 0.1e12,
              1e-15);
  kernel.variant = models::Kernel::Variant::kPlain;
  kernel.num_gemms = 2;
  EXPECT_EQ(KernelSeconds(profile, kPeak, kernel), plain);
}

// github.com/ai-dynamo/aiconfigurator, mla: sequences of one length, heads of
// 192, microseconds. Preset and fixed time of the benchmark.
TEST(KernelSecondsTest, MeasuredLatentAttentionOfH100) {
  const DeviceProfile profile = *LoadDeviceProfile("h100-sxm");
  const struct {
    double batch, tokens, heads, us;
  } rows[] = {{1, 2048, 8, 50.7},     {1, 16384, 1, 286.2},
              {4, 4096, 8, 364.0},    {1, 4096, 128, 1262.9},
              {4, 4096, 128, 5363.5}, {1, 32768, 8, 4803.8}};
  for (const auto& [batch, tokens, heads, us] : rows) {
    models::Kernel kernel;
    kernel.kind = models::Kernel::Kind::kAttention;
    kernel.variant = models::Kernel::Variant::kLatent;
    kernel.batch = batch * heads;
    kernel.m = kernel.n = tokens;
    kernel.k = 192;
    kernel.num_gemms = 2;
    kernel.flops = 2 * kernel.batch * tokens * tokens * (192 + 128);
    kernel.performed_flops = kernel.flops / 2;
    const double seconds = KernelSeconds(profile, 989.4e12, kernel) -
                           profile.kernel_seconds().value() + 14e-6;
    EXPECT_NEAR(1e6 * seconds / us, 1, 0.25) << tokens;
  }
}

TEST(KernelSecondsTest, GroupedGemmsTakeTheirPartOfBatchedOnes) {
  models::Kernel kernel = MakeGemm(5, 512, 128, 320);
  DeviceProfile profile = Toy();
  const double plain = KernelSeconds(profile, kPeak, kernel);
  profile.mutable_grouped_gemm_time()->set_value(0.8);
  EXPECT_EQ(KernelSeconds(profile, kPeak, kernel), plain);
  kernel.variant = models::Kernel::Variant::kGrouped;
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel), 0.8 * plain, 1e-15);
  profile.clear_grouped_gemm_time();
  EXPECT_EQ(KernelSeconds(profile, kPeak, kernel), plain);
}

TEST(KernelSecondsTest, RecurrencesHaveTheirOwnRates) {
  models::Kernel kernel = MakeGemm(5, 512, 128, 320);
  DeviceProfile profile = Toy();
  const double plain = KernelSeconds(profile, kPeak, kernel);
  profile.mutable_decay_recurrence_efficiency()->set_value(0.25);
  profile.mutable_delta_recurrence_efficiency()->set_value(0.125);
  EXPECT_EQ(KernelSeconds(profile, kPeak, kernel), plain);
  kernel.variant = models::Kernel::Variant::kDecay;
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel), 4 * kernel.flops / kPeak,
              1e-15);
  kernel.variant = models::Kernel::Variant::kDelta;
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel), 8 * kernel.flops / kPeak,
              1e-15);
  profile.clear_delta_recurrence_efficiency();
  EXPECT_EQ(KernelSeconds(profile, kPeak, kernel), plain);
}

TEST(KernelSecondsTest, ConvolutionsHaveTheirOwnRate) {
  models::Kernel kernel = models::MemoryKernel(5e6);
  kernel.variant = models::Kernel::Variant::kConvolution;
  DeviceProfile profile = Toy();
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel), 1e-6 + 5e-3, 1e-15);
  profile.mutable_convolution_efficiency()->set_value(0.25);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel), 1e-6 + 10e-3, 1e-15);
}

// github.com/ai-dynamo/aiconfigurator, linear_attention: kernels of Mamba-2
// with states of 128, heads of 64, 8 groups and chunks of 128, milliseconds.
TEST(KernelSecondsTest, MeasuredRecurrencesOfB200) {
  const DeviceProfile profile = *LoadDeviceProfile("b200-sxm");
  const struct {
    double batch, tokens, heads, ms;
  } rows[] = {{1, 32768, 128, 2.81458}, {8, 4096, 128, 2.51191},
              {4, 8192, 64, 1.43503},   {64, 512, 128, 2.64942},
              {2, 8192, 256, 2.82776},  {8, 32768, 64, 11.5597}};
  for (const auto& [batch, tokens, heads, ms] : rows) {
    models::Shape shape;
    shape.tokens = batch * tokens;
    shape.sequence_length = tokens;
    models::LayerWork work;
    models::AddDecayRecurrence(shape,
                               {.heads = heads,
                                .groups = 8,
                                .key_size = 128,
                                .value_size = 64,
                                .chunk = 128},
                               &work);
    const double seconds =
        KernelSeconds(profile, *PeakFlops(profile, "bf16"), work.forward);
    EXPECT_NEAR(1e3 * seconds / ms, 1, 0.15) << batch << " x " << tokens;
  }
}

TEST(KernelSecondsTest, AttentionDependsOnItsFormat) {
  models::Kernel kernel;
  kernel.kind = models::Kernel::Kind::kAttention;
  kernel.batch = kernel.m = kernel.n = kernel.k = 100;
  kernel.num_gemms = 2;
  kernel.performed_flops = 4e9;
  kernel.format = OPERAND_FP8;
  DeviceProfile profile = Toy();
  profile.mutable_attention_efficiency()->set_value(0.25);
  MatrixRate& rate = *profile.add_matrix_rates();
  rate.set_format("fp8");
  rate.mutable_peak_flops()->set_value(4e12);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel), 1e-6 + 4e9 / 0.5e12,
              1e-12);
  rate.mutable_attention_speed()->set_value(1.6);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel), 1e-6 + 4e9 / 0.8e12,
              1e-12);
}

TEST(KernelSecondsTest, AttentionDependsOnTheHeadSize) {
  DeviceProfile profile = Toy();
  EXPECT_EQ(HeadSizeEfficiency(profile, 64), 1);
  for (const auto& [size, efficiency] :
       {std::pair(64, 0.5), std::pair(128, 1.0)}) {
    AttentionHeadSize* head = profile.add_attention_head_sizes();
    head->set_head_size(size);
    head->mutable_relative_efficiency()->set_value(efficiency);
  }
  EXPECT_EQ(HeadSizeEfficiency(profile, 32), 0.5);
  EXPECT_EQ(HeadSizeEfficiency(profile, 64), 0.5);
  EXPECT_EQ(HeadSizeEfficiency(profile, 128), 1);
  EXPECT_EQ(HeadSizeEfficiency(profile, 256), 1);
  // Both take 128 units of time for a score, and so does a size between.
  EXPECT_NEAR(HeadSizeEfficiency(profile, 96), 96.0 / 128, 1e-12);
  models::Kernel kernel;
  kernel.kind = models::Kernel::Kind::kAttention;
  kernel.k = 64;
  kernel.flops = 4e9;
  profile.mutable_attention_efficiency()->set_value(0.5);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, kernel), 1e-6 + 8e-3, 1e-15);
}

TEST(KernelSecondsTest, AttentionDependsOnTheLibrary) {
  DeviceProfile profile = Toy();
  profile.mutable_attention_efficiency()->set_value(0.5);
  profile.mutable_attention_backward_efficiency()->set_value(0.25);
  AttentionLibrary* library = profile.add_attention_libraries();
  library->set_kernel(FLASH_ATTENTION_2);
  library->mutable_forward()->set_value(0.5);
  library->mutable_backward()->set_value(0.2);
  models::Kernel forward;
  forward.kind = models::Kernel::Kind::kAttention;
  forward.num_gemms = 2;
  forward.flops = 4e9;
  models::Kernel backward = forward;
  backward.num_gemms = 5;
  for (const AttentionKernel other : {ATTENTION_UNSPECIFIED, CUDNN}) {
    profile.set_attention_kernel(other);
    EXPECT_NEAR(KernelSeconds(profile, kPeak, forward), 1e-6 + 4e-3, 1e-15);
  }
  profile.set_attention_kernel(FLASH_ATTENTION_2);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, forward), 1e-6 + 8e-3, 1e-15);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, backward), 1e-6 + 40e-3, 1e-15);
}

TEST(KernelSecondsTest, PermutationsHaveTheirOwnRate) {
  DeviceProfile profile = Toy();
  const models::Kernel permute =
      models::MemoryKernel(5e6, models::KernelPart::kPermute);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, permute), 1e-6 + 5e-3, 1e-15);
  profile.mutable_permute_efficiency()->set_value(0.25);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, permute), 1e-6 + 10e-3, 1e-15);
}

TEST(KernelSecondsTest, GemmsKnowTheirAlignment) {
  models::Kernel kernel = models::GemmKernel(1, 512, 640, 320, 2);
  EXPECT_EQ(ShapeOf(kernel).alignment_bytes, 16);  // unknown: aligned
  kernel.row_alignment = 2;
  EXPECT_EQ(ShapeOf(kernel).alignment_bytes, 4);
}

TEST(KernelSecondsTest, NormsHaveTheirOwnRate) {
  DeviceProfile profile = Toy();
  const models::Kernel norm =
      models::MemoryKernel(5e6, models::KernelPart::kNorm);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, norm), 1e-6 + 5e-3, 1e-15);
  profile.mutable_norm_efficiency()->set_value(0.25);
  EXPECT_NEAR(KernelSeconds(profile, kPeak, norm), 1e-6 + 10e-3, 1e-15);
}

TEST(KernelSecondsTest, EveryLaunchCostsTheFixedTime) {
  EXPECT_NEAR(Seconds(models::MemoryKernel(5e6, models::KernelPart::kLoss, 6)),
              6e-6 + 5e-3, 1e-15);
}

TEST(KernelSecondsTest, KernelsRunOneAfterTheOther) {
  EXPECT_NEAR(
      KernelSeconds(Toy(), kPeak,
                    std::vector<models::Kernel>{models::MemoryKernel(1e6),
                                                models::MemoryKernel(2e6)}),
      2e-6 + 3e-3, 1e-15);
  EXPECT_EQ(KernelSeconds(Toy(), kPeak, std::vector<models::Kernel>()), 0);
}

TEST(KernelSecondsTest, MoreBytesAreNeverFaster) {
  models::Kernel kernel = MakeGemm(1, 200, 1000, 300);
  double last = 0;
  for (int64_t bytes = 1; bytes < 1'000'000'000; bytes *= 3) {
    kernel.bytes = static_cast<double>(bytes);
    EXPECT_GE(Seconds(kernel), last) << bytes;
    last = Seconds(kernel);
  }
}

// A training step on one GPU, priced bottom up: GEMMs, element-wise kernels,
// and an Adam step that moves 30 bytes per parameter.
struct Step {
  const char* device;
  uint32_t layers, hidden, heads, sequence_length;
  int batch;
  uint32_t vocabulary;
  RecomputeMode recompute;
  double published_tflops;  // includes recomputation
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
  models::WorkSpec spec;
  spec.microbatch_size = step.batch;
  spec.sequence_length = static_cast<int>(step.sequence_length);
  spec.dropout = true;
  spec.recompute = step.recompute;
  const DeviceProfile profile = *LoadDeviceProfile(step.device);
  const double peak = *PeakFlops(profile, "fp16");
  const std::vector<models::LayerWork> layers = models::LayersOf(model, spec);
  double flops = models::ModelFlops(layers, 1);
  double seconds = KernelSeconds(
      profile, peak, models::MemoryKernel(30 * models::CountParameters(model)));
  for (const models::LayerWork& layer : layers) {
    for (const auto* kernels : {&layer.forward, &layer.backward_input,
                                &layer.backward_weight, &layer.recompute}) {
      seconds += KernelSeconds(profile, peak, *kernels);
    }
    for (const models::Kernel& kernel : layer.recompute) flops += kernel.flops;
  }
  return flops / seconds / 1e12;
}

// Megatron-LM README of 2020 (tables.tex of github.com/msr-fiddle/pipedream,
// branch pipedream_2bw): GPT with 1.16 billion parameters on one GPU.
TEST(BottomUpTest, SingleGpuMegatronIsWithinAnEighth) {
  for (const Step& step : {Step{"v100-sxm2-32gb", 24, 1920, 15, 1024, 8, 51200,
                                RECOMPUTE_FULL, 71.9},
                           Step{"a100-sxm-40gb", 24, 1920, 15, 1024, 16, 51200,
                                RECOMPUTE_FULL, 149.8}}) {
    EXPECT_NEAR(Tflops(step) / step.published_tflops, 1, 0.125) << step.device;
  }
}

// Narayanan et al. 2021 (PipeDream-2BW): GPT with 355 million parameters on one
// V100. The paper does not give the batch size.
TEST(BottomUpTest, SingleV100Of2BWIsWithinAFifth) {
  for (int batch : {4, 8}) {
    const Step step{"v100-sxm2-16gb", 24, 1024, 16, 512, batch, 50257,
                    RECOMPUTE_NONE,   45};
    EXPECT_NEAR(Tflops(step) / step.published_tflops, 1, 0.2) << batch;
  }
}

}  // namespace weir::calibrate::kernel_seconds_test
