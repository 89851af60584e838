// SPDX-License-Identifier: Apache-2.0
// DAPPLE, BaPipe and breadth-first: known orders with other warm-ups.
#include "gmock/gmock.h"
#include "tests/oracle.h"
#include "tests/schedules/closed_form.h"

namespace weir::schedules::one_f_one_b_kinds_test {

using testing::AllOf;
using testing::HasSubstr;

constexpr double kForward = 1.0, kBackward = 2.1;
constexpr double kBoth = kForward + kBackward;

// Calls check(p, m) for every shape of up to 16 ranks and 40 microbatches.
template <typename Check>
void ForAllShapes(const Check& check) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 1; m <= 40; ++m) {
      SCOPED_TRACE(absl::StrCat("p ", p, " m ", m));
      check(p, m);
      if (testing::Test::HasFailure()) return;
    }
  }
}

int HopsOfOneFOneB(int p, int m) { return p + m - 2 - (m - 1 + p - 1) / p; }

// More forwards ahead keep more microbatches in flight in the same time.
TEST(AheadTest, EveryRankKeepsSoManyMicrobatchesMore) {
  EXPECT_EQ(RowOf(Valid("1f1b:ahead=1", {2, 3}), 1), "1F0 1F1 1B0 1F2 1B1 1B2");
  ForAllShapes([](int p, int m) {
    EXPECT_EQ(Valid("1f1b:ahead=0", {p, m}).rank_actions,
              Valid("1f1b", {p, m}).rank_actions);
    for (int ahead : {1, 2, 5}) {
      const Schedule schedule =
          Valid(absl::StrCat("1f1b:ahead=", ahead), {p, m});
      for (int s = 0; s < p; ++s) {
        EXPECT_EQ(PeakActivations(schedule, s), std::min(p - s + ahead, m));
      }
      ExpectClose(Makespan(schedule, kForward, kBackward), (m + p - 1) * kBoth);
    }
  });
}

TEST(DappleTest, PolicyAIsOneFOneBUntilTheLimitBinds) {
  ForAllShapes([](int p, int m) {
    const Schedule schedule = Valid("dapple-pa", {p, m});
    EXPECT_EQ(schedule.rank_actions, Valid("1f1b", {p, m}).rank_actions);
  });
  const Schedule limited = Valid("dapple-pa:memory-limit=2", {3, 4});
  EXPECT_EQ(RowOf(limited, 0), "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3");
  EXPECT_EQ(RowOf(limited, 1), "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3");
  EXPECT_EQ(RowOf(limited, 2), "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3");
}

TEST(DappleTest, StagesKeepWhatThePolicyAndTheLimitAllow) {
  ForAllShapes([](int p, int m) {
    for (int limit : {1, 2, 3, 7, 100}) {
      const std::string option = absl::StrCat(":memory-limit=", limit);
      const Schedule a = Valid("dapple-pa" + option, {p, m});
      const Schedule b = Valid("dapple-pb" + option, {p, m});
      for (int s = 0; s < p; ++s) {
        EXPECT_EQ(PeakActivations(a, s), std::min({p - s, limit, m}));
        EXPECT_EQ(PeakActivations(b, s), std::min({2 * (p - s) - 1, limit, m}));
      }
    }
  });
}

TEST(DappleTest, ALimitOfOneIsOneMicrobatchAtATime) {
  ForAllShapes([](int p, int m) {
    ExpectClose(Makespan(Valid("dapple-pa:memory-limit=1", {p, m}), kForward,
                         kBackward),
                m * p * kBoth);
  });
}

TEST(DappleTest, PolicyBHidesHopsUpToHalfAMicrobatch) {
  ForAllShapes([](int p, int m) {
    for (absl::string_view name : {"dapple-pb", "bapipe-so"}) {
      const Schedule schedule = Valid(name, {p, m});
      for (double c : {0.0, 0.13, 1.4, kBoth / 2}) {
        ExpectClose(Makespan(schedule, kForward, kBackward, c),
                    (m + p - 1) * kBoth + 2 * (p - 1) * c);
      }
    }
  });
}

TEST(BaPipeTest, AsynchronousHardwareTakesOneFOneBsTime) {
  ForAllShapes([](int p, int m) {
    for (absl::string_view name : {"bapipe-as", "bapipe-fbp-as"}) {
      ExpectClose(Makespan(Valid(name, {p, m}), kForward, kBackward),
                  (m + p - 1) * kBoth);
    }
  });
}

TEST(BaPipeTest, ForwardAndBackwardRunTogether) {
  const Schedule schedule = Valid("bapipe-fbp-as", {2, 4});
  EXPECT_EQ(RowOf(schedule, 0), "0F0 0F1 0F2 (0F3;0B0) 0B1 0B2 0B3");
  EXPECT_EQ(RowOf(schedule, 1), "1F0 (1F1;1B0) (1F2;1B1) (1F3;1B2) 1B3");
}

// Parallel passes keep twice as many activations as 1F1B. Alternating passes
// keep one fewer than that, as a backward ends before the next forward starts.
TEST(BaPipeTest, TwiceTheFeatures) {
  ForAllShapes([](int p, int m) {
    const Schedule parallel = Valid("bapipe-fbp-as", {p, m});
    const Schedule eager = Valid("bapipe-so", {p, m});
    const Schedule plain = Valid("bapipe-as", {p, m});
    for (int s = 0; s < p; ++s) {
      EXPECT_EQ(PeakActivations(parallel, s), std::min(2 * (p - s), m));
      EXPECT_EQ(PeakActivations(eager, s), std::min(2 * (p - s) - 1, m));
      EXPECT_EQ(PeakActivations(plain, s), std::min(p - s, m));
    }
  });
}

// The formula assumes that a transfer delays only its consumer. Ranks that
// block on both sides of an exchange wait longer.
TEST(BaPipeTest, UnhiddenTransfersCostTwoHopsForNearlyEveryMicrobatch) {
  ForAllShapes([](int p, int m) {
    const Schedule schedule = Valid("bapipe-sno", {p, m});
    for (double c : {0.0, 0.13, 1.4, 5.0}) {
      const double expected =
          (m + p - 1) * kBoth + 2 * c * HopsOfOneFOneB(p, m);
      ExpectClose(Makespan(schedule, kForward, kBackward, c), expected);
      oracle::Costs costs = oracle::EqualStages(schedule, kForward, kBackward);
      costs.latency_seconds = c;
      EXPECT_GE(oracle::Evaluate(schedule, costs, oracle::Transfers::kBlocking)
                        ->makespan_seconds +
                    1e-9,
                expected);
    }
  });
}

TEST(BreadthFirstTest, RunsAStageToTheEndBeforeTheNext) {
  const Schedule schedule = Valid("LoopedBFS", {2, 2, 2});
  EXPECT_EQ(RowOf(schedule, 0), "0F0 0F1 2F0 2F1 2B1 2B0 0B1 0B0");
  EXPECT_EQ(RowOf(schedule, 1), "1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0");
  EXPECT_EQ(RowOf(Valid("breadth-first:backward-order=forward", {2, 2, 2}), 0),
            "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1");
}

// With fewer microbatches than ranks, every round of chunks waits for the first
// microbatch to return.
TEST(BreadthFirstTest, DividesTheBubbleByTheChunks) {
  ForAllShapes([](int p, int m) {
    for (int v : {1, 2, 3, 4}) {
      const double expected =
          ((v - 1) * std::max(m, p) + m + p - 1) * kBoth / v;
      for (absl::string_view order : {"reverse", "forward"}) {
        const Schedule schedule = Valid(
            absl::StrCat("breadth-first:backward-order=", order), {p, m, v});
        ExpectClose(Makespan(schedule, kForward, kBackward), expected);
        EXPECT_EQ(PeakActivations(schedule, p - 1), m * v);
      }
      if (m >= p) ExpectClose(expected, m * kBoth + (p - 1) * kBoth / v);
    }
  });
}

TEST(BreadthFirstTest, OneChunkIsGPipe) {
  ForAllShapes([](int p, int m) {
    for (absl::string_view order : {"reverse", "forward"}) {
      const std::string option = absl::StrCat(":backward-order=", order);
      EXPECT_EQ(Valid("breadth-first" + option, {p, m}).rank_actions,
                Valid("gpipe" + option, {p, m}).rank_actions);
    }
  });
}

TEST(GPipeTest, BackwardsMayRunInTheOrderOfTheForwards) {
  EXPECT_EQ(RowOf(Valid("gpipe:backward-order=forward", {1, 3}), 0),
            "0F0 0F1 0F2 0B0 0B1 0B2");
  ForAllShapes([](int p, int m) {
    const Schedule schedule = Valid("gpipe:backward-order=forward", {p, m});
    for (double c : {0.0, 0.13, 5.0}) {
      ExpectClose(Makespan(schedule, kForward, kBackward, c),
                  (m + p - 1) * kBoth + 2 * (p - 1) * c);
    }
  });
}

TEST(OneFOneBKindsTest, IllegalShapesAreNamed) {
  for (absl::string_view name : {"dapple-pa", "dapple-pb", "bapipe-as",
                                 "bapipe-fbp-as", "bapipe-sno", "bapipe-so"}) {
    EXPECT_THAT(ErrorOf(name, {2, 4, 2, 2}),
                AllOf(HasSubstr("chunks is 2, expected 1"),
                      HasSubstr("num_batches is 2, expected 1")));
  }
  EXPECT_THAT(ErrorOf("dapple-pb:memory-limit=0", {2, 4}),
              HasSubstr("memory-limit is '0', expected 1 to"));
  EXPECT_THAT(ErrorOf("breadth-first:backward-order=up", {2, 4, 2, 2}),
              AllOf(HasSubstr("backward-order is 'up', expected reverse or "
                              "forward"),
                    HasSubstr("num_batches is 2, expected 1")));
}

}  // namespace weir::schedules::one_f_one_b_kinds_test
