// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::calibrate::fit_figures_test {

constexpr double kPeak = 4.8e12;

std::vector<StreamSample> Streams(const StreamFigures& planted,
                                  const std::vector<StreamKind>& kinds) {
  std::vector<StreamSample> samples;
  for (const StreamKind kind : kinds) {
    for (int64_t size = 1'000'000; size < 2'000'000'000; size *= 4) {
      const double bytes = size;
      samples.push_back({kind, 1, bytes,
                         planted.launch_seconds +
                             bytes / (kPeak * planted.efficiency[int(kind)])});
    }
  }
  return samples;
}

TEST(FitStreamsTest, PlantedFiguresComeBack) {
  const StreamFigures planted = {2.1e-6, {0.9, 0.7, 0.82}};
  const auto fit =
      FitStreams(kPeak, {5e-6, {0.6, 0.9, 0.5}},
                 Streams(planted, {StreamKind::kMemory, StreamKind::kNorm,
                                   StreamKind::kElementwise}));
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_NEAR(fit->figures.launch_seconds / 2.1e-6, 1, 1e-5);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(fit->figures.efficiency[i] / planted.efficiency[i], 1, 1e-5);
  }
  EXPECT_LT(fit->errors.mean_absolute, 1e-6);
}

TEST(FitStreamsTest, OneBadKernelMovesLittleAndWhatHasNoSampleStays) {
  const StreamFigures planted = {2e-6, {0.9, 0.7, 0.8}};
  std::vector<StreamSample> samples =
      Streams(planted, {StreamKind::kMemory, StreamKind::kElementwise});
  samples[4].seconds *= 3;
  const auto fit = FitStreams(kPeak, {3e-6, {0.6, 0.33, 0.5}}, samples);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_NEAR(fit->figures.efficiency[0], 0.9, 0.03);
  EXPECT_NEAR(fit->figures.efficiency[1], 0.33, 1e-9);
}

TEST(FitStreamsTest, NothingToFitIsSaid) {
  EXPECT_THAT(std::string(FitStreams(kPeak, {}, {}).status().message()),
              testing::HasSubstr("no streaming kernel"));
  const std::vector<StreamSample> samples = {{StreamKind::kNorm, 1, 0, 1}};
  EXPECT_THAT(std::string(FitStreams(kPeak, {}, samples).status().message()),
              testing::HasSubstr("streaming kernel 0 has"));
}

AttentionSample Attention(double s, double gemms,
                          const AttentionFigures& planted) {
  AttentionSample sample;
  sample.num_gemms = gemms;
  sample.flops = gemms * 16 * s * s * 128;  // causal
  sample.flops_per_ramp_key = 2 * gemms * 16 * s * 128;
  sample.seconds =
      2e-6 + (sample.flops + sample.flops_per_ramp_key * planted.ramp_keys) /
                 (1e15 * (gemms > 2 ? planted.backward_efficiency
                                    : planted.forward_efficiency));
  return sample;
}

TEST(FitAttentionTest, PlantedFiguresComeBackFromSeveralLengths) {
  const AttentionFigures planted = {0.6, 0.45, 300};
  std::vector<AttentionSample> samples;
  for (double s : {512, 1024, 2048, 8192}) {
    samples.push_back(Attention(s, 2, planted));
    samples.push_back(Attention(s, 5, planted));
  }
  const auto fit = FitAttention(1e15, 2e-6, {0.8, 0.8, 500}, samples);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_NEAR(fit->figures.forward_efficiency, 0.6, 1e-4);
  EXPECT_NEAR(fit->figures.backward_efficiency, 0.45, 1e-4);
  EXPECT_NEAR(fit->figures.ramp_keys, 300, 0.1);
}

TEST(FitAttentionTest, OneLengthLeavesTheRampNearItsStart) {
  const AttentionFigures planted = {0.6, 0.45, 300};
  const auto fit =
      FitAttention(1e15, 2e-6, {0.6, 0.45, 250},
                   {Attention(2048, 2, planted), Attention(2048, 5, planted)});
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_NEAR(fit->figures.ramp_keys, 250, 60);
  EXPECT_LT(fit->errors.mean_absolute, 1e-3);
}

}  // namespace weir::calibrate::fit_figures_test
