// SPDX-License-Identifier: Apache-2.0
// Duration of a paced copy, measured with the emulator's timer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "calibrate/gpu/kernels/kernels.h"
#include "tests/calibrate/gpu/emulator/emulator.h"

namespace weir::calibrate::paced_copy_test {

constexpr int64_t kChunk = 16 << 10;
constexpr double kSteps[] = {32, 1000};  // Hopper's timer, earlier timers

class PacedCopyTest : public testing::Test {
 protected:
  ~PacedCopyTest() override {
    emulator::SetTimerStep(32);
    emulator::OnTimerRead(nullptr);
  }

  // Returns the nanoseconds that a copy takes.
  double Copy(int64_t num_bytes, double latency_seconds,
              double bytes_per_second, int num_multiprocessors = 4) {
    from_.assign(num_bytes, 1);
    to_.assign(num_bytes, 0);
    Launch launch;
    launch.num_multiprocessors = num_multiprocessors;
    EXPECT_EQ(LaunchPacedCopy(launch, {.from = from_.data(),
                                       .to = to_.data(),
                                       .num_bytes = num_bytes,
                                       .latency_seconds = latency_seconds,
                                       .bytes_per_second = bytes_per_second}),
              cudaSuccess);
    EXPECT_EQ(to_, from_);
    return static_cast<double>(emulator::GridNanoseconds());
  }

  std::vector<uint8_t> from_, to_;
};

TEST_F(PacedCopyTest, AnUncontendedCopyTakesItsLatencyAndItsBytesByItsRate) {
  for (const double step : kSteps) {
    emulator::SetTimerStep(static_cast<uint64_t>(step));
    for (const double rate : {1e9, 25e9, 400e9}) {
      for (const double latency : {0.0, 5e-6, 1e-3}) {
        for (const int64_t bytes : {int64_t{1}, kChunk, int64_t{3'000'001}}) {
          const double expected =
              1e9 * (latency + static_cast<double>(bytes) / rate);
          const double taken = Copy(bytes, latency, rate);
          // Each chunk takes at least one read of the timer.
          const double reads = step * (1 + static_cast<double>(bytes) / kChunk);
          EXPECT_GE(taken, expected) << bytes << " " << rate;
          EXPECT_LE(taken, std::max(expected + 3 * step, reads + 3 * step))
              << bytes << " " << rate << " " << latency;
        }
      }
    }
  }
}

TEST_F(PacedCopyTest, NothingTakesItsLatency) {
  EXPECT_NEAR(Copy(0, 5e-6, 1e9), 5000, 100);
}

TEST_F(PacedCopyTest, WithoutARateItTakesItsLatencyAlone) {
  EXPECT_NEAR(Copy(1'000'000, 50e-6, 0), 50000, 100);
}

TEST_F(PacedCopyTest, ItIsNeverMoreThanAChunkAheadOfItsRate) {
  constexpr double kLatency = 5000, kRate = 2;  // ns; bytes/ns, one block
  int num_looks = 0;
  emulator::OnTimerRead([&](uint64_t nanoseconds) {
    ++num_looks;
    const double moved =
        static_cast<double>(std::count(to_.begin(), to_.end(), uint8_t{1}));
    const double due =
        kRate * std::max(0.0, static_cast<double>(nanoseconds) - kLatency);
    EXPECT_LE(moved, due + kChunk);
  });
  Copy(150'000, 1e-9 * kLatency, 1e9 * kRate);
  EXPECT_GT(num_looks, 100);
}

TEST_F(PacedCopyTest, BlocksFollowTheRateAndFitTheirMultiprocessors) {
  EXPECT_EQ(NumPacedCopyBlocks(1e9), 1);
  EXPECT_EQ(NumPacedCopyBlocks(25e9), 3);
  EXPECT_EQ(NumPacedCopyBlocks(400e9), 40);
  EXPECT_EQ(MaxPacedCopyBlocks(4), 32);
  // 40 blocks are needed but only 8 are available: they copy everything at
  // their own rate.
  EXPECT_GT(Copy(3'000'000, 0, 400e9, 1), 0);
}

TEST_F(PacedCopyTest, NonsenseIsRefused) {
  for (const PacedCopy& copy :
       {PacedCopy{.num_bytes = -1}, PacedCopy{.latency_seconds = -1},
        PacedCopy{.bytes_per_second = -1}}) {
    EXPECT_EQ(LaunchPacedCopy({}, copy), cudaErrorInvalidValue);
  }
}

}  // namespace weir::calibrate::paced_copy_test
