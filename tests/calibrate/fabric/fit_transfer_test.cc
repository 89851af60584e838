// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/fit_transfer.h"

#include <cmath>
#include <limits>
#include <random>

#include "calibrate/fabric/fabric_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir::calibrate::fit_transfer_test {

using ::testing::HasSubstr;

constexpr double kMax = 0x1p28;

TransferPiece Piece(double from, double latency, double rate) {
  TransferPiece piece;
  piece.set_from_bytes(from);
  piece.set_latency_seconds(latency);
  piece.set_bytes_per_second(rate);
  return piece;
}

std::vector<TransferSample> SamplesOf(const std::vector<TransferPiece>& pieces,
                                      double noise, int seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> error(0, noise);
  std::vector<TransferSample> samples;
  for (const double bytes : TransferSizes(16, kMax)) {
    samples.push_back({bytes, TransferSeconds(pieces, bytes) *
                                  (noise > 0 ? std::exp(error(random)) : 1)});
  }
  return samples;
}

// Returns 7 us and 30 GB/s, then 80 GB/s from 256 KiB, then 360 GB/s from 16
// MiB.
std::vector<TransferPiece> ThreePieces() {
  const double a = 7e-6;
  const double b = a + 0x1p18 / 30e9 - 0x1p18 / 80e9;
  const double c = b + 0x1p24 / 80e9 - 0x1p24 / 360e9;
  return {Piece(0, a, 30e9), Piece(0x1p18, b, 80e9), Piece(0x1p24, c, 360e9)};
}

TEST(FitTransferTest, RecoversWhatIsPiecewise) {
  const auto fit =
      FitTransfer(SamplesOf(ThreePieces(), 0, 0), TransferKnots(16, kMax));
  ASSERT_TRUE(fit.ok()) << fit.status();
  ASSERT_EQ(fit->pieces.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const TransferPiece expected = ThreePieces()[i];
    EXPECT_EQ(fit->pieces[i].from_bytes(), expected.from_bytes());
    EXPECT_NEAR(fit->pieces[i].latency_seconds() / expected.latency_seconds(),
                1, 1e-9);
    EXPECT_NEAR(fit->pieces[i].bytes_per_second() / expected.bytes_per_second(),
                1, 1e-9);
  }
  EXPECT_LT(fit->residual, 1e-9);
}

TEST(FitTransferTest, RecoversItThroughNoise) {
  double mean_rate = 0;
  double mean_residual = 0;
  for (int seed = 0; seed < 20; ++seed) {
    const auto fit = FitTransfer(SamplesOf(ThreePieces(), 0.02, seed),
                                 TransferKnots(16, kMax));
    ASSERT_TRUE(fit.ok()) << fit.status();
    EXPECT_EQ(fit->pieces.size(), 3u) << seed;
    for (int64_t size = 1024; size <= kMax; size *= 2) {
      const double bytes = size;
      EXPECT_NEAR(TransferSeconds(fit->pieces, bytes) /
                      TransferSeconds(ThreePieces(), bytes),
                  1, 0.03)
          << bytes << " bytes, seed " << seed;
    }
    mean_rate += fit->pieces.back().bytes_per_second() / 20;
    mean_residual += fit->residual / 20;
  }
  // Nine sizes with 2 % noise determine the last slope within 1.5 %, 20 runs
  // within 0.3 %.
  EXPECT_NEAR(mean_rate, 360e9, 360e9 * 0.01);
  EXPECT_NEAR(mean_residual, 0.02, 0.002);
}

TEST(FitTransferTest, ALineStaysALine) {
  int num_more = 0;
  for (int seed = 0; seed < 100; ++seed) {
    const auto fit = FitTransfer(SamplesOf({Piece(0, 5e-6, 25e9)}, 0.03, seed),
                                 TransferKnots(16, kMax));
    ASSERT_TRUE(fit.ok()) << fit.status();
    num_more += fit->pieces.size() > 1;
    EXPECT_NEAR(fit->pieces.back().bytes_per_second(), 25e9, 25e9 * 0.06);
  }
  EXPECT_LE(num_more, 2);
}

TEST(FitTransferTest, BandwidthAndLatencyNeverFall) {
  // A convex time: the second half is slower.
  const std::vector<TransferPiece> convex = {Piece(0, 5e-6, 100e9),
                                             Piece(0x1p20, 5e-6, 50e9)};
  const auto fit =
      FitTransfer(SamplesOf(convex, 0.02, 3), TransferKnots(16, kMax));
  ASSERT_TRUE(fit.ok()) << fit.status();
  for (size_t i = 1; i < fit->pieces.size(); ++i) {
    const TransferPiece& before = fit->pieces[i - 1];
    const TransferPiece& after = fit->pieces[i];
    EXPECT_GE(after.bytes_per_second(), before.bytes_per_second());
    EXPECT_GE(after.latency_seconds(), before.latency_seconds());
    EXPECT_NEAR(
        before.latency_seconds() +
            after.from_bytes() / before.bytes_per_second(),
        after.latency_seconds() + after.from_bytes() / after.bytes_per_second(),
        1e-12);
  }
}

// Messages of an H100 to itself, 2026-11-26: 40 us are the time of a launch.
TEST(FitTransferTest, TimesOfLaunchesAreALineWithALargeResidual) {
  const std::vector<TransferSample> samples = {
      {0x1p10, 49.2e-6}, {0x1p12, 43.7e-6}, {0x1p14, 57.6e-6},
      {0x1p16, 39.8e-6}, {0x1p18, 39.6e-6}, {0x1p20, 40.6e-6},
      {0x1p22, 48.5e-6}, {0x1p24, 41.3e-6}, {0x1p26, 57.6e-6},
      {0x1p28, 211e-6}};
  const auto fit = FitTransfer(samples, TransferKnots(16, kMax));
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->pieces.size(), 1u);
  EXPECT_GT(fit->residual, 0.15);
  EXPECT_LT(TransferSeconds(fit->pieces, 0x1p28), 0.85 * 211e-6);
}

TEST(FitTransferTest, TwoSizesMakeALine) {
  const auto fit =
      FitTransfer({{1000, 2e-6}, {3000, 4e-6}}, TransferKnots(16, kMax));
  ASSERT_TRUE(fit.ok()) << fit.status();
  ASSERT_EQ(fit->pieces.size(), 1u);
  EXPECT_NEAR(fit->pieces[0].latency_seconds(), 1e-6, 1e-15);
  EXPECT_NEAR(fit->pieces[0].bytes_per_second(), 1e9, 1);
}

TEST(FitTransferTest, RefusesWhatIsNoMeasurement) {
  const auto message = [](const std::vector<TransferSample>& samples) {
    const auto fit = FitTransfer(samples, {});
    EXPECT_EQ(fit.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(fit.status().message());
  };
  EXPECT_THAT(message({}), HasSubstr("0 different sizes"));
  EXPECT_THAT(message({{8, 1e-6}, {8, 2e-6}}), HasSubstr("1 different sizes"));
  EXPECT_THAT(message({{8, 1e-6}, {16, 0}}), HasSubstr("samples[1].seconds"));
  EXPECT_THAT(message({{8, std::nan("")}, {16, 1e-6}}),
              HasSubstr("samples[0].seconds"));
  EXPECT_THAT(message({{std::nan(""), 1e-6}, {16, 1e-6}}),
              HasSubstr("samples[0].bytes"));
  EXPECT_THAT(
      message({{8, 1e-6}, {16, std::numeric_limits<double>::infinity()}}),
      HasSubstr("samples[1].seconds"));
  EXPECT_THAT(message({{8, 3e-6}, {16, 2e-6}, {32, 1e-6}}),
              HasSubstr("do not grow with bytes"));
}

}  // namespace weir::calibrate::fit_transfer_test
