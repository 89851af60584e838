// SPDX-License-Identifier: Apache-2.0
// Tests the idle times of GPUs on cases small enough to draw.
#include "sim/report/gpu_times.h"

#include <gtest/gtest.h>

#include "sim/simulate.h"
#include "tests/sim/measured.h"

namespace weir::sim::gpu_times_test {

// Two stages with forwards of 1 s, backwards of 2 s and transfers of 1 s.
Measured TwoStages(const char* schedule, int num_microbatches) {
  Measured measured;
  measured.schedule = schedule;
  measured.num_ranks = 2;
  measured.num_microbatches = num_microbatches;
  measured.forward_seconds = {1, 1};
  measured.backward_seconds = {2, 2};
  measured.activation_bytes = {10, 0};
  return measured;
}

void ExpectRank(const Result& result, int rank, double busy, double exposed) {
  EXPECT_NEAR(result.ranks(rank).busy_seconds(), busy, 1e-9) << rank;
  EXPECT_NEAR(result.ranks(rank).idle_seconds(),
              result.makespan_seconds() - busy, 1e-9)
      << rank;
  EXPECT_NEAR(result.ranks(rank).exposed_communication_seconds(), exposed, 1e-9)
      << rank;
}

// Rank 0: F 0..2, B 7..9, B 9..11. Rank 1: F 2..3, F 3..4, B 4..6, B 6..8. The
// transfers of the first input (1..2) and the first gradient (6..7) are
// exposed; those of the second ones overlap with computation.
TEST(GpuTimesTest, OnlyTheTransferThatIsWaitedForIsExposed) {
  const auto result =
      Simulate(Resolve(TwoStages("gpipe", 2), ChainOfLinks(2, 10, 0)));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->makespan_seconds(), 11, 1e-9);
  ExpectRank(*result, 0, 6, 1);
  ExpectRank(*result, 1, 6, 1);
  EXPECT_NEAR(result->idle_ratio(), 1 - 6.0 / 11, 1e-9);
  EXPECT_NEAR(result->exposed_communication_ratio(), 1.0 / 11, 1e-9);
}

// Rank 0: F 0..1, sends 1..2, F 2..3, sends 3..4, receives 7..8, B 8..10,
// receives 10..11, B 11..13. Rank 1: receives 1..2, F 2..3, receives 3..4, F
// 4..5, B 5..7, sends 7..8, B 8..10, sends 10..11.
TEST(GpuTimesTest, BlockingTransfersAreExposedAtBothEnds) {
  scenarios::ResolvedScenario resolved =
      Resolve(TwoStages("gpipe", 2), ChainOfLinks(2, 10, 0));
  resolved.scenario.mutable_communication()->set_transfers(BLOCKING);
  const auto result = Simulate(resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->makespan_seconds(), 13, 1e-9);
  ExpectRank(*result, 0, 6, 1 + 1 + 1 + 1);
  ExpectRank(*result, 1, 6, 1 + 1 + 1);
}

// 1F1B exchanges an activation and a gradient at the same time: rank 0 runs F0
// and F1, then sends F1's output and receives B0's gradient in one exchange.
// The overlapping time counts once.
TEST(GpuTimesTest, TransfersOfOneExchangeCountOnce) {
  scenarios::ResolvedScenario resolved =
      Resolve(TwoStages("1f1b", 3), ChainOfLinks(2, 10, 0));
  resolved.scenario.mutable_communication()->set_transfers(BLOCKING);
  const auto result = Simulate(resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  // Rank 0: F 0..1, sends 1..2, F 2..3; rank 1: F 2..3, B 3..5; both exchange
  // 5..6. Rank 0: B 6..8, F 8..9; rank 1: F 6..7, B 7..9; both exchange 9..10.
  // Rank 0: B 10..12; rank 1: F 10..11, B 11..13, sends 13..14. Rank 0: B
  // 14..16.
  EXPECT_NEAR(result->makespan_seconds(), 16, 1e-9);
  ExpectRank(*result, 0, 9, 1 + 1 + 1 + 1);
  ExpectRank(*result, 1, 9, 1 + 1 + 1);
}

// A transfer that arrives during an optimizer step of its receiver is hidden.
TEST(GpuTimesTest, TransfersOverlappingAStepAreHidden) {
  Measured measured = TwoStages("pipedream", 8);
  measured.num_batches = 1;
  measured.parameter_bytes = {4, 400};
  scenarios::ResolvedScenario resolved =
      Resolve(measured, ChainOfLinks(2, 10, 0));
  resolved.device.mutable_memory_bytes_per_second()->set_value(1000);
  const auto result = Simulate(resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  // Rank 1 waits for the first input, 1..2, and then computes for 8 x (3 + 2.8)
  // s.
  EXPECT_NEAR(result->ranks(1).exposed_communication_seconds(), 1, 1e-9);
  EXPECT_NEAR(result->ranks(1).busy_seconds(), 8 * 5.8, 1e-9);
  for (const RankResult& rank : result->ranks()) {
    EXPECT_LE(rank.exposed_communication_seconds(), rank.idle_seconds() + 1e-9);
  }
}

}  // namespace weir::sim::gpu_times_test
