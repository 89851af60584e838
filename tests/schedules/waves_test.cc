// SPDX-License-Identifier: Apache-2.0
// Hanayo and BitPipe: stages that run down the ranks and back.
#include "gmock/gmock.h"
#include "tests/schedules/closed_form.h"

namespace weir::schedules::waves_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kForward = 1.0;
constexpr double kBackwards[] = {1, 1.5, 2, 2.7};

TEST(HanayoTest, OneWaveIsAVWithOneFOneBInEveryStage) {
  const Schedule schedule = Valid("hanayo", {2, 2, 2});
  EXPECT_THAT(schedule.routes, ElementsAre(ElementsAre(0, 1, 1, 0)));
  EXPECT_EQ(RowOf(schedule, 0), "0F0 0F1 3F0 3B0 3F1 3B1 0B0 0B1");
  EXPECT_EQ(RowOf(schedule, 1), "1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1");
}

// After its first backward, a stage alternates until its forwards are done, and
// never holds more than p microbatches: 1F1B on the stages of the wave.
TEST(HanayoTest, EveryStageAlternatesAfterItsWarmUp) {
  for (int p : {1, 2, 3, 4, 8}) {
    for (int waves : {1, 2, 3}) {
      const int m = 3 * p;
      const Schedule schedule = Valid("hanayo", {p, m, 2 * waves});
      for (int stage = 0; stage < schedule.num_stages; ++stage) {
        int forwards = 0, backwards = 0;
        Op last = Op::kBackward;
        for (const Action& action :
             schedule.rank_actions[schedule.routes[0][stage]]) {
          if (action.stage != stage) continue;
          int& done = action.op == Op::kForward ? forwards : backwards;
          EXPECT_EQ(action.microbatch, done++);
          EXPECT_LE(forwards - backwards, p);
          const bool in_steady_state = backwards % p > 0 && forwards % p > 0;
          EXPECT_TRUE(!in_steady_state || action.op != last);
          last = action.op;
        }
        EXPECT_EQ(forwards, m);
      }
    }
  }
}

TEST(HanayoTest, TurningPointsNeedNoTransfer) {
  for (int p : {1, 2, 5}) {
    const Schedule schedule = Valid("hanayo", {p, p, 6});
    const std::vector<int>& route = schedule.routes[0];
    for (int stage = p - 1; stage + 1 < schedule.num_stages; stage += p) {
      EXPECT_EQ(route[stage], route[stage + 1]);
    }
    EXPECT_EQ(schedule.num_routes(), 1);  // weights are not duplicated
  }
}

TEST(HanayoTest, IdleTimeIsDividedByTheWaves) {
  for (int p = 1; p <= 12; ++p) {
    for (int waves = 1; waves <= 4; ++waves) {
      for (int units = 1; units <= 5; ++units) {
        const int m = units * p;
        const Schedule schedule = Valid("hanayo", {p, m, 2 * waves});
        for (double b : kBackwards) {
          ExpectClose(Makespan(schedule, kForward, b),
                      m * (kForward + b) +
                          (p - 1) * (b + (units - 1) * (b - kForward)) / waves);
        }
      }
    }
  }
}

TEST(HanayoTest, MoreWavesAreNeverSlower) {
  for (int p : {2, 3, 4, 8}) {
    for (int m = 1; m <= 3 * p; ++m) {
      for (double b : kBackwards) {
        double before = 1e300;
        for (int waves = 1; waves <= 5; ++waves) {
          const double now =
              Makespan(Valid("hanayo", {p, m, 2 * waves}), kForward, b);
          EXPECT_LE(now, before + 1e-9) << p << " " << m << " " << waves;
          before = now;
        }
      }
    }
  }
}

TEST(HanayoTest, KeepsAtMostWhatPMicrobatchesTake) {
  for (int p : {1, 2, 4, 7}) {
    for (int waves : {1, 2, 3}) {
      for (int units : {1, 2, 4}) {
        const Schedule schedule = Valid("hanayo", {p, units * p, 2 * waves});
        for (int rank = 0; rank < p; ++rank) {
          EXPECT_EQ(PeakActivations(schedule, rank),
                    (2 * waves - 1) * p + rank + 1);
        }
      }
    }
  }
}

// Layers 0-1, 6-7, 8-9 and 14-15 of 16 are on rank 0 in the paper.
TEST(BitPipeTest, RankZeroHoldsBothEndsOfBothVs) {
  const Schedule schedule = Valid("bitpipe", {4, 4, 2});
  EXPECT_THAT(schedule.StagesOf(0), ElementsAre(0, 3, 4, 7));
  EXPECT_THAT(schedule.StagesOf(1), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(schedule.routes,
              ElementsAre(ElementsAre(0, 1, 2, 3, 3, 2, 1, 0),
                          ElementsAre(3, 2, 1, 0, 0, 1, 2, 3)));
  EXPECT_EQ(RowOf(schedule, 0),
            "0F0 0F1 3F2 4F2 3F3 4F3 7F0 7B0 7F1 7B1 4B2 3B2 4B3 3B3 0B0 0B1");
}

TEST(BitPipeTest, WeightsAreThereTwiceAndTheTurnIsLocal) {
  for (int d : {2, 4, 8}) {
    const Schedule schedule = Valid("bitpipe", {d, d, 2});
    for (int stage = 0; stage < 2 * d; ++stage) {
      EXPECT_EQ(schedule.RanksOf(stage).size(), 2);
    }
    for (const std::vector<int>& route : schedule.routes) {
      EXPECT_EQ(route[d - 1], route[d]);
    }
    for (int rank = 0; rank < d; ++rank) {
      EXPECT_EQ(schedule.StagesOf(rank).size(), 4);
    }
  }
}

TEST(BitPipeTest, OneUnitHasThePapersBubble) {
  for (int d = 2; d <= 24; d += 2) {
    const int n = d;
    const double makespan = Makespan(Valid("bitpipe", {d, n, 2}), 1, 2);
    const double bubble = (makespan - 3 * n) / makespan;
    EXPECT_NEAR(bubble, (d - 2) / (3.0 * n + d - 2), 1e-12);
  }
}

TEST(BitPipeTest, LongerBackwardsLeaveAGapBetweenUnits) {
  for (int d = 2; d <= 12; d += 2) {
    for (int chunks : {2, 4}) {
      for (int units = 1; units <= 5; ++units) {
        const int n = units * d;
        const Schedule schedule = Valid("bitpipe", {d, n, chunks});
        for (double b : kBackwards) {
          ExpectClose(
              Makespan(schedule, kForward, b),
              n * (kForward + b) +
                  (d - 2) * (b + (units - 1) * (b - kForward)) / chunks);
        }
      }
    }
  }
}

TEST(BitPipeTest, KeepsChimerasOfOneChunkAndAUnitOfEachOther) {
  for (int d = 2; d <= 12; d += 2) {
    for (int chunks : {2, 4}) {
      for (int n : {d, d + 1, 2 * d, 5 * d}) {
        const Schedule schedule = Valid("bitpipe", {d, n, chunks});
        for (int rank = 0; rank < d; ++rank) {
          EXPECT_EQ(PeakActivations(schedule, rank),
                    (chunks - 1) * d + d / 2 + 1 + std::min(rank, d - 1 - rank))
              << d << " " << n << " " << chunks << " " << rank;
        }
      }
    }
  }
}

TEST(WavesTest, AnyNumberOfMicrobatchesIsLegal) {
  for (int d : {2, 4, 6}) {
    for (int n = 1; n <= 3 * d + 1; ++n) {
      if (n > 1) {
        EXPECT_GE(Makespan(Valid("bitpipe", {d, n, 2}), 1, 2) + 1e-9, 3 * n);
      }
      EXPECT_GE(Makespan(Valid("hanayo", {d, n, 2}), 1, 2) + 1e-9, 3 * n);
    }
  }
}

TEST(WavesTest, IllegalShapesAreNamed) {
  EXPECT_THAT(ErrorOf("bitpipe", {5, 1, 3, 2}),
              AllOf(HasSubstr("num_microbatches is 1, expected 2 or more"),
                    HasSubstr("pipeline is 5, expected an even number"),
                    HasSubstr("chunks is 3, expected an even number"),
                    HasSubstr("num_batches is 2, expected 1")));
  EXPECT_THAT(ErrorOf("hanayo", {4, 4, 1, 2}),
              AllOf(HasSubstr("chunks is 1, expected an even number"),
                    HasSubstr("num_batches is 2, expected 1")));
}

}  // namespace weir::schedules::waves_test
