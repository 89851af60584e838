// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pricing/gemm_seconds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "calibrate/profile/device_profile.h"

namespace weir::calibrate::gemm_seconds_test {

// 10 multiprocessors that are limited only by arithmetic, at 1e12 of 2e12
// FLOP/s.
const GemmMachine kMachine = {2e12, 10, 1e9};

GemmTerms<double> Arithmetic() {
  GemmTerms<double> terms{};
  terms.matrix_rate = 0.5;
  terms.cache_bytes_per_second = 1e30;
  terms.cache_shares = 1;
  terms.output_bytes_per_second = 1e30;
  terms.memory_rate = 1;
  terms.cache_bytes = 1e30;
  terms.wave_quantization = 1;
  return terms;
}

double Seconds(const GemmTerms<double>& terms, double m, double n, double k,
               double batch = 1) {
  GemmSize shape = MakeGemmSize(m, n, k);
  shape.batch = batch;
  shape.bytes *= batch;
  return FastestGemm(kMachine, terms, shape).seconds;
}

void ExpectRatio(double seconds, double expected) {
  EXPECT_NEAR(seconds / expected, 1, 1e-9);
}

TEST(GemmSecondsTest, WholeWavesRunAtTheRate) {
  ExpectRatio(Seconds(Arithmetic(), 2560, 2560, 320),
              2.0 * 2560 * 2560 * 320 / 1e12);
}

TEST(GemmSecondsTest, UnalignedRowsReachAPartOfTheRate) {
  GemmTerms<double> terms = Arithmetic();
  terms.aligned_rates = {0.5, 0.25, 0.125};
  GemmSize shape = MakeGemmSize(2560, 2560, 320);
  EXPECT_EQ(shape.alignment_bytes, 128);
  const double aligned = FastestGemm(kMachine, terms, shape).seconds;
  ExpectRatio(aligned, 2.0 * 2560 * 2560 * 320 / 1e12);
  shape.alignment_bytes = 16;
  EXPECT_EQ(FastestGemm(kMachine, terms, shape).seconds, aligned);
  shape.alignment_bytes = 8;
  ExpectRatio(FastestGemm(kMachine, terms, shape).seconds, 2 * aligned);
  shape.alignment_bytes = 4;
  ExpectRatio(FastestGemm(kMachine, terms, shape).seconds, 4 * aligned);
  shape.alignment_bytes = 2;
  ExpectRatio(FastestGemm(kMachine, terms, shape).seconds, 8 * aligned);
}

TEST(GemmSecondsTest, RowsAreInnerDimensionsAndColumnsOfTheResult) {
  EXPECT_EQ(MakeGemmSize(7, 128, 64).alignment_bytes, 128);
  EXPECT_EQ(MakeGemmSize(7, 128, 108).alignment_bytes, 8);
  EXPECT_EQ(MakeGemmSize(7, 150, 128).alignment_bytes, 4);
  EXPECT_EQ(MakeGemmSize(7, 150, 128, 4).alignment_bytes, 8);
  EXPECT_EQ(MakeGemmSize(8, 50257, 8).alignment_bytes, 2);
  EXPECT_EQ(MakeGemmSize(8, 12.5, 8).alignment_bytes, 16);  // unknown
}

TEST(GemmSecondsTest, AbsentRatesOfUnalignedRowsAreOne) {
  GemmModel model;
  EXPECT_EQ(AlignedRatesOf(model), (std::array<double, 3>{1, 1, 1}));
  model.mutable_rate_aligned_to_4_bytes()->set_value(0.5);
  EXPECT_EQ(AlignedRatesOf(model), (std::array<double, 3>{1, 0.5, 1}));
  EXPECT_EQ(TermsOf(model, Clock::kSustained).aligned_rates,
            AlignedRatesOf(model));
}

// The inner dimension of one step of the main loop, too short to be split.
constexpr double kStep = 32;
constexpr double kWave = 2 * 64 * 64 * kStep * 10 / 1e12;

TEST(GemmSecondsTest, OneRowMoreCostsAnotherWave) {
  ExpectRatio(Seconds(Arithmetic(), 640, 64, kStep), kWave);
  // 22 tiles of 64 x 32: three waves of half the size.
  ExpectRatio(Seconds(Arithmetic(), 641, 64, kStep), 1.5 * kWave);
  ExpectRatio(Seconds(Arithmetic(), 704, 64, kStep), 1.5 * kWave);
}

TEST(GemmSecondsTest, WithoutQuantizationTheLastWaveSharesItsWork) {
  GemmTerms<double> terms = Arithmetic();
  terms.wave_quantization = 0;
  ExpectRatio(Seconds(terms, 704, 64, kStep), 1.1 * kWave);
  terms.wave_quantization = 0.5;  // 22 tiles of 64 x 32: 2.6 half waves
  ExpectRatio(Seconds(terms, 704, 64, kStep), 1.3 * kWave);
}

TEST(GemmSecondsTest, BatchedGemmsShareTheWaves) {
  ExpectRatio(Seconds(Arithmetic(), 256, 128, 320, 10),
              2.0 * 256 * 128 * 320 * 10 / 1e12);
}

TEST(GemmSecondsTest, LongGemmsWithFewTilesAreSplit) {
  const GemmTerms<double> terms = Arithmetic();
  const auto choice = FastestGemm(kMachine, terms, MakeGemmSize(64, 64, 64000));
  EXPECT_GT(choice.splits, 1);
  // Ten multiprocessors share one tile; the last of them fill only part of a
  // wave.
  EXPECT_LT(choice.seconds, 1.3 * 2 * 64 * 64 * 64000 / 1e12);
}

TEST(GemmSecondsTest, ThinGemmsWaitForMemory) {
  GemmTerms<double> terms = Arithmetic();
  terms.cache_bytes = 0;
  terms.memory_rate = 0.5;
  const GemmSize shape = MakeGemmSize(1, 4096, 4096);
  EXPECT_NEAR(FastestGemm(kMachine, terms, shape).seconds, shape.bytes / 0.5e9,
              1e-3 * shape.bytes / 0.5e9);
  // If the operands stay in the cache, the GEMM does not wait for memory.
  terms.cache_bytes = 1e9;
  EXPECT_LT(FastestGemm(kMachine, terms, shape).seconds,
            0.1 * shape.bytes / 0.5e9);
}

TEST(GemmSecondsTest, LongGemmsFeelThePowerLimit) {
  GemmTerms<double> terms = Arithmetic();
  terms.throttling = 0.2;
  const double plain = Seconds(Arithmetic(), 2560, 2560, 3.2e6);
  ExpectRatio(Seconds(terms, 2560, 2560, 3.2e6),
              plain * (1 + 0.2 * plain / (plain + 1e-3)));
}

TEST(GemmSecondsTest, NothingBeatsTheReachableRate) {
  for (double m : {1.0, 99.0, 100.0, 101.0, 1234.0}) {
    for (double n : {1.0, 64.0, 100.0, 777.0, 5000.0}) {
      EXPECT_GE(Seconds(Arithmetic(), m, n, 64, 2), 4 * m * n * 64 / 1e12);
    }
  }
}

TEST(GemmSecondsTest, MoreWorkInAnyDimensionIsNeverFaster) {
  for (const char* name : {"a100-sxm-80gb", "h200-sxm", "v100-sxm2-32gb"}) {
    const DeviceProfile profile = *LoadDeviceProfile(name);
    const double peak = *PeakFlops(profile, "fp16");
    for (const Clock clock : {Clock::kBurst, Clock::kSustained}) {
      for (int dimension = 0; dimension < 4; ++dimension) {
        double last = 0;
        for (int size = 1; size < 1500; ++size) {
          double sizes[] = {3, 530, 270, 500};
          sizes[dimension] = size;
          GemmSize shape = MakeGemmSize(sizes[1], sizes[2], sizes[3]);
          shape.batch = sizes[0];
          shape.bytes *= sizes[0];
          shape.alignment_bytes = 16;
          const double seconds = GemmSeconds(profile, peak, shape, clock);
          EXPECT_GE(seconds, last * (1 - 1e-12))
              << name << " " << dimension << " " << size;
          last = seconds;
        }
      }
    }
  }
}

TEST(GemmSecondsTest, EmptyGemmsCostTheirLaunch) {
  GemmTerms<double> terms = Arithmetic();
  terms.launch_seconds = 3e-6;
  EXPECT_EQ(Seconds(terms, 0, 64, 64), 3e-6);
}

// Sustained rates of large GEMMs: Azure AI-benchmarking-guide (A100), mlxcel
// issue 1654 (V100, fp16), SemiAnalysis of December 2024 (mean of five shapes
// on H100 and H200: 720 TFLOP/s), our measurement through PyTorch (H200: 788),
// the best GEMM of each of 8 B200 in github.com/stas00/ml-engineering
// compute/accelerator/benchmarks.
TEST(GemmSecondsTest, PresetsReachThePublishedRates) {
  struct Published {
    const char* device;
    double size, low, high;
  };
  for (const Published& published :
       {Published{"a100-sxm-80gb", 8192, 252e12, 256e12},
        Published{"h100-sxm", 8192, 720e12, 788e12},
        Published{"h200-sxm", 8192, 720e12, 788e12},
        Published{"b200-sxm", 8192, 1417e12, 1472e12},
        Published{"v100-sxm2-32gb", 4096, 92e12, 100e12},
        Published{"t4", 8192, 24e12, 26e12}}) {
    const DeviceProfile profile = *LoadDeviceProfile(published.device);
    const double size = published.size;
    const double seconds =
        GemmSeconds(profile, *PeakFlops(profile, "fp16"),
                    MakeGemmSize(size, size, size), Clock::kSustained);
    const double rate = 2 * size * size * size / seconds;
    EXPECT_GE(rate, published.low) << published.device;
    EXPECT_LE(rate, published.high) << published.device;
  }
}

}  // namespace weir::calibrate::gemm_seconds_test
