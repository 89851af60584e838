// SPDX-License-Identifier: Apache-2.0
// Compares the oracle with times computed by hand, and tests blocking
// transfers.
#include "tests/oracle.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::oracle_test {

using oracle::Costs;
using oracle::EqualStages;
using oracle::Evaluate;
using oracle::Timing;
using oracle::Transfers;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(OracleTest, BufferedTransferHoldsUpOnlyItsConsumer) {
  const Schedule schedule = Generated("1f1b", {2, 2});
  Costs costs = EqualStages(schedule, 1, 2);
  costs.latency_seconds = 1;
  const Timing timing = Evaluate(schedule, costs).value();
  EXPECT_THAT(timing.start_seconds[0], ElementsAre(0, 1, 6, 9));
  EXPECT_THAT(timing.start_seconds[1], ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(timing.end_seconds[1], ElementsAre(3, 5, 6, 8));
  EXPECT_EQ(timing.makespan_seconds, 11);
  EXPECT_THAT(timing.busy_seconds, ElementsAre(6, 6));
  EXPECT_THAT(timing.idle_seconds, ElementsAre(5, 5));
  EXPECT_THAT(timing.span_seconds, ElementsAre(11, 6));
  EXPECT_THAT(timing.peak_microbatches, ElementsAre(2, 1));
}

// 0F1 waits until 0F0 is sent, and its own transfer waits until rank 1 has
// finished 1B0.
TEST(OracleTest, BlockingTransferHoldsUpBothSides) {
  const Schedule schedule = Generated("1f1b", {2, 2});
  Costs costs = EqualStages(schedule, 1, 2);
  costs.latency_seconds = 1;
  const Timing timing = Evaluate(schedule, costs, Transfers::kBlocking).value();
  EXPECT_THAT(timing.start_seconds[0], ElementsAre(0, 2, 6, 10));
  EXPECT_THAT(timing.start_seconds[1], ElementsAre(2, 3, 6, 7));
  EXPECT_EQ(timing.makespan_seconds, 12);
}

TEST(OracleTest, StagesAndTransfersHaveTheirOwnTimes) {
  const Schedule schedule = FromText("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
  Costs costs;
  costs.forward_seconds = {1, 3};
  costs.backward_seconds = {10, 20};
  costs.latency_seconds = 0.5;
  costs.hop_seconds = [](int from, int to) { return from < to ? 1 : 100; };
  costs.transfer_seconds = [](const Action& producer) {
    return producer == Action{Op::kForward, 0, 1} ? 1000 : 0;
  };
  const Timing timing = Evaluate(schedule, costs).value();
  EXPECT_THAT(timing.start_seconds[1],
              ElementsAre(2.5, 1003.5, 1006.5, 1026.5));
  EXPECT_THAT(timing.start_seconds[0], ElementsAre(0, 1, 1127, 1147));
}

TEST(OracleTest, NextActionWaitsForTheUpdate) {
  const Schedule schedule = Generated("pipedream", {2, 2});
  Costs costs = EqualStages(schedule, 1, 2);
  costs.update_seconds = {0.25, 0.5};
  const Timing timing = Evaluate(schedule, costs).value();
  EXPECT_THAT(timing.start_seconds[1], ElementsAre(1, 2, 4.5, 5.5));
  EXPECT_THAT(timing.start_seconds[0], ElementsAre(0, 1, 4, 7.5));
  EXPECT_EQ(timing.makespan_seconds, 9.75);
  EXPECT_THAT(timing.update_seconds, ElementsAre(0.5, 1));
  EXPECT_THAT(timing.idle_seconds, ElementsAre(3.25, 2.75));
}

TEST(OracleTest, FlushUpdatesOnceAfterTheLastBackward) {
  const Schedule schedule = Generated("1f1b", {2, 4});
  Costs costs = EqualStages(schedule, 1, 2);
  const double without = Evaluate(schedule, costs)->makespan_seconds;
  costs.update_seconds = {5, 0};
  EXPECT_EQ(Evaluate(schedule, costs)->makespan_seconds, without + 5);
}

TEST(OracleTest, SplitBackwardSendsAfterItsInputGradient) {
  const Schedule schedule = FromText("0F0,0I0,0W0\n1F0,1I0,1W0\n");
  const Timing timing = Evaluate(schedule, EqualStages(schedule, 1, 2)).value();
  EXPECT_THAT(timing.start_seconds[0], ElementsAre(0, 3, 4));
  EXPECT_THAT(timing.start_seconds[1], ElementsAre(1, 2, 3));
}

TEST(OracleTest, StagesOfOneRankNeedNoTransfer) {
  const Schedule schedule = FromText("0F0,1F0,1B0,0B0\n");
  Costs costs = EqualStages(schedule, 1, 2);
  costs.latency_seconds = 100;
  for (Transfers transfers : {Transfers::kBuffered, Transfers::kBlocking}) {
    const Timing timing = Evaluate(schedule, costs, transfers).value();
    EXPECT_EQ(timing.makespan_seconds, 6);
    EXPECT_THAT(timing.peak_microbatches, ElementsAre(1));
  }
}

TEST(OracleTest, DeadlockIsReported) {
  const Schedule schedule = FromText("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  const absl::Status status =
      Evaluate(schedule, EqualStages(schedule, 1, 2)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "deadlock: stuck are rank 0 at position 1 (0B0), rank 1 at "
            "position 1 (1F1)");
}

bool BlockingDeadlocks(const Schedule& schedule) {
  return !Evaluate(schedule, EqualStages(schedule, 1, 2), Transfers::kBlocking)
              .ok();
}

// Returns true for kinds that warm up beyond 1F1B. More microbatches are in
// flight between two of their ranks than one exchange can hold, so they need
// buffered sends.
bool NeedsBufferedSends(const ScheduleKind& kind) {
  return kind.name == "zb-h2" || kind.name == "zb-2p" || kind.name == "spp";
}

TEST(OracleTest, BlockingNeverDeadlocksWithOneStagePerRank) {
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    if (NeedsBufferedSends(kind)) continue;
    for (int p = 1; p <= 8; ++p) {
      for (int m = 1; m <= 4 * p; ++m) {
        for (int batches : {1, 3}) {
          const ScheduleSpec spec = {p, m, 1, batches};
          if (!kind.check(spec).ok()) continue;
          const Schedule schedule = kind.generate(spec);
          if (schedule.num_routes() > 1) continue;  // several stages per rank
          EXPECT_FALSE(BlockingDeadlocks(schedule))
              << kind.name << " p " << p << " m " << m;
        }
      }
    }
  }
}

// If ranks also exchanged between the forward and the backward of a pair, there
// would be a circular wait. With p = 2, v = 2, m = 4: 0F3 waits until 2B0's
// gradient is sent, which requires rank 1 to finish 1F2. That waits until 3B1's
// gradient is sent, which requires rank 0 to finish 0F3.
TEST(OracleTest, BlockingInterleavedNeverDeadlocks) {
  for (int p = 1; p <= 8; ++p) {
    for (int v = 2; v <= 4; ++v) {
      for (int m = p; m <= 4 * p; m += p) {
        EXPECT_FALSE(BlockingDeadlocks(Generated("interleaved", {p, m, v})))
            << "p " << p << " v " << v << " m " << m;
      }
    }
  }
}

TEST(OracleTest, BlockingIsNeverFasterThanBuffered) {
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    if (NeedsBufferedSends(kind)) continue;
    for (int p : {1, 2, 4, 5}) {
      for (int m : {1, 5, 12}) {
        const ScheduleSpec spec = {p, m};
        if (!kind.check(spec).ok()) continue;
        const Schedule schedule = kind.generate(spec);
        if (schedule.num_routes() > 1) continue;
        Costs costs = EqualStages(schedule, 1, 2.1);
        for (double latency_seconds : {0.0, 0.3, 4.0}) {
          costs.latency_seconds = latency_seconds;
          EXPECT_GE(
              Evaluate(schedule, costs, Transfers::kBlocking)->makespan_seconds,
              Evaluate(schedule, costs)->makespan_seconds);
        }
      }
    }
  }
}

}  // namespace weir::schedules::oracle_test
