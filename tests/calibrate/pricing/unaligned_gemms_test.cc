// SPDX-License-Identifier: Apache-2.0
// GEMMs of unfused attention on an A100 with head sizes whose rows are and are
// not multiples of 16 bytes: 64 heads, 2048 tokens, fp16. Measured by Anthony
// et al. 2024, github.com/EleutherAI/cookbook
// sizing/results/transformer_data/h_sweep.out, commit 27dff48d. The rates of
// the preset come from another table of that repository, with one shape of
// GEMM.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "base/error_statistics.h"
#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate::unaligned_gemms_test {

struct Head {
  double size;
  double scores, values;  // TFLOP/s of both GEMMs
};
constexpr Head kHeads[] = {
    {128, 91.589, 134.750}, {130, 69.467, 88.627},  {132, 61.110, 58.305},
    {134, 70.566, 88.617},  {136, 88.844, 115.564}, {138, 72.267, 88.056},
    {140, 73.520, 89.029},  {142, 73.727, 89.668},  {144, 93.312, 127.111},
    {146, 76.297, 91.501},  {148, 76.385, 92.729}};

struct Comparison {
  std::vector<double> predicted, measured;  // seconds
};

Comparison Compare(const DeviceProfile& profile, bool unaligned) {
  Comparison all;
  for (const Head& head : kHeads) {
    if ((std::fmod(head.size, 8) != 0) != unaligned) continue;
    for (const bool scores : {true, false}) {
      GemmSize size = scores ? MakeGemmSize(2048, 2048, head.size)
                             : MakeGemmSize(2048, head.size, 2048);
      size.batch = 64;
      size.bytes *= size.batch;
      const double flops = 2 * size.batch * size.m * size.n * size.k;
      all.measured.push_back(flops /
                             (1e12 * (scores ? head.scores : head.values)));
      all.predicted.push_back(
          GemmSeconds(profile, 3.12e14, size, Clock::kSustained));
    }
  }
  return all;
}

TEST(UnalignedGemmsTest, AreAsSlowAsMeasured) {
  DeviceProfile profile = *LoadDeviceProfile("a100-sxm-40gb");
  for (const bool unaligned : {false, true}) {
    const Comparison all = Compare(profile, unaligned);
    const ErrorStatistics errors = SummarizeErrors(all.predicted, all.measured);
    std::cout << (unaligned ? "unaligned: " : "aligned: ") << Describe(errors)
              << "\n";
    EXPECT_LT(errors.mean_absolute, 0.1);
  }
  profile.mutable_gemm()->clear_rate_aligned_to_8_bytes();
  profile.mutable_gemm()->clear_rate_aligned_to_4_bytes();
  const Comparison all = Compare(profile, true);
  EXPECT_LT(SummarizeErrors(all.predicted, all.measured).bias, -0.2);
}

// 8192 x 51200 x 14336 with vocabularies that are multiples of 8, 4, 2 and 1
// elements: 255.5, 140, 138.6 and 74 TFLOP/s in vocab_v_sweep.out.
TEST(UnalignedGemmsTest, AnUnpaddedVocabularyIsAsSlowAsMeasured) {
  const DeviceProfile profile = *LoadDeviceProfile("a100-sxm-80gb");
  const auto teraflops = [&](double vocabulary) {
    const double flops = 2.0 * 8192 * vocabulary * 14336;
    return flops * 1e-12 /
           GemmSeconds(profile, 3.12e14, MakeGemmSize(8192, vocabulary, 14336),
                       Clock::kSustained);
  };
  EXPECT_NEAR(teraflops(51200), 255.5, 3);
  EXPECT_NEAR(teraflops(51204), 140, 3);
  EXPECT_NEAR(teraflops(51202), 138.6, 3);
  EXPECT_NEAR(teraflops(51201), 74, 3);
}

}  // namespace weir::calibrate::unaligned_gemms_test
