// SPDX-License-Identifier: Apache-2.0
// Compares times and memory of the Zero Bubble schedules with closed forms.
// Transfers take no time.
#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "schedules/validate.h"
#include "schedules/walk.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::zero_bubble_closed_forms_test {

struct Times {
  double span, makespan;
};

Schedule Sound(absl::string_view name, const ScheduleSpec& spec) {
  Schedule schedule = Generated(name, spec);
  EXPECT_TRUE(ValidateSchedule(schedule).ok()) << ValidateSchedule(schedule);
  return schedule;
}

PassCosts Costs(double forward, double input, double weight) {
  StagePassCosts stage;
  stage.forward = forward;
  stage.backward_input = input;
  stage.backward_weight = weight;
  PassCosts costs;
  costs.stages = {stage};
  return costs;
}

Times TimesOf(const Schedule& schedule, const PassCosts& costs) {
  const WalkTimes times = TimedWalk(schedule, costs);
  return {times.span(), times.makespan()};
}

void ExpectClose(double found, double expected) {
  EXPECT_NEAR(found, expected, 1e-9 * std::max(1.0, expected));
}

// Returns the peak memory of a rank. A microbatch of a stage holds `activation`
// from F to I, and `inputs` from I to W.
double PeakHeld(const std::vector<Action>& actions, double activation,
                double inputs) {
  double held = 0, peak = 0;
  for (const Action& action : actions) {
    if (action.op == Op::kForward) held += activation;
    if (action.op == Op::kBackwardInput) held += inputs - activation;
    if (action.op == Op::kBackwardWeight) held -= inputs;
    peak = std::max(peak, held);
  }
  return peak;
}

constexpr double kPassTimes[] = {.5, .8, 1, 1.2, 1.7};

// Calls check(F, I, W) for all combinations of pass times.
template <typename Check>
void ForAllTimes(const Check& check) {
  for (double forward : kPassTimes) {
    for (double input : kPassTimes) {
      for (double weight : kPassTimes) {
        SCOPED_TRACE(absl::StrCat("F ", forward, " I ", input, " W ", weight));
        check(forward, input, weight);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

// Calls check(p, m) for several numbers of microbatches per rank.
template <typename Check>
void ForShapes(int least_m_per_rank, const Check& check) {
  for (int p = 1; p <= 16; ++p) {
    for (int m : {p, p + 1, 2 * p, 3 * p - 1, 5 * p}) {
      if (m < least_m_per_rank * p) continue;
      SCOPED_TRACE(absl::StrCat("p ", p, " m ", m));
      check(p, m);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(ZeroBubbleClosedForms, H1LosesAForwardAndAnInputLessAWeightPerRank) {
  ForShapes(1, [](int p, int m) {
    const Schedule schedule =
        Sound("zb-h1", {.num_ranks = p, .num_microbatches = m});
    ForAllTimes([&](double f, double i, double w) {
      const Times times = TimesOf(schedule, Costs(f, i, w));
      const double cost = m * (f + i + w) + (p - 1) * (f + i - w);
      if (w <= f) {
        ExpectClose(times.span, cost);
        if (w <= i) ExpectClose(times.makespan, cost);
      } else {
        if (p > 1) {
          EXPECT_GT(times.span, cost + 1e-9);
        }
      }
    });
  });
}

TEST(ZeroBubbleClosedForms, H2LosesAnotherWeightLessPerRank) {
  ForShapes(2, [](int p, int m) {
    const Schedule schedule =
        Sound("zb-h2", {.num_ranks = p, .num_microbatches = m});
    ForAllTimes([&](double f, double i, double w) {
      if (w > f || 2 * w > f + i) return;
      const Times times = TimesOf(schedule, Costs(f, i, w));
      const double cost = m * (f + i + w) + (p - 1) * (f + i - 2 * w);
      ExpectClose(times.span, cost);
      // If all ranks start together, the last rank starts too late to gain:
      // with F=I=W the makespan is that of H1.
      if (w <= i) {
        ExpectClose(times.makespan, cost + (p - 1) * std::max(0.0, 2 * w - i));
      }
    });
  });
}

TEST(ZeroBubbleClosedForms, H1AndH2HoldFewerActivationsAndMoreInputsByStage) {
  ForShapes(2, [](int p, int m) {
    const Schedule h1 = Sound("zb-h1", {.num_ranks = p, .num_microbatches = m});
    const Schedule h2 = Sound("zb-h2", {.num_ranks = p, .num_microbatches = m});
    for (double inputs : {0.0, 0.3, 0.8, 1.0}) {
      for (int s = 0; s < p; ++s) {
        ExpectClose(PeakHeld(h1.rank_actions[s], 1, inputs),
                    (p - s) + s * inputs);
        ExpectClose(PeakHeld(h2.rank_actions[s], 1, inputs),
                    (2 * (p - s) - 1) + 2 * s * inputs);
      }
    }
  });
}

// Appendix H: no W delays another pass; only the last W adds to the makespan.
TEST(ZeroBubbleClosedForms, FewMicrobatchesWaitOnlyForTheLastWeight) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 1; m <= p; ++m) {
      SCOPED_TRACE(absl::StrCat("p ", p, " m ", m));
      const Schedule h1 =
          Sound("zb-h1", {.num_ranks = p, .num_microbatches = m});
      ForAllTimes([&](double f, double i, double w) {
        if (w > f || w > i) return;
        const double makespan = (m + p - 1) * (f + i) + w;
        ExpectClose(TimesOf(h1, Costs(f, i, w)).makespan, makespan);
        for (absl::string_view name : {"zb-1p", "zb-2p"}) {
          if (f != 1) continue;
          ScheduleSpec spec = {.num_ranks = p, .num_microbatches = m};
          spec.costs = Costs(f, i, w);
          ExpectClose(TimesOf(Generated(name, spec), spec.costs).makespan,
                      makespan);
        }
      });
    }
  }
}

ScheduleSpec VSpec(int p, int m) {
  return {.num_ranks = p, .num_microbatches = m, .num_chunks = 2};
}

// Returns the largest number of chunks of a rank whose W is not done.
int PeakChunks(const std::vector<Action>& actions) {
  return static_cast<int>(PeakHeld(actions, 1, 1));
}

// The last rank of the V starts p-1 time units later, so a single batch takes
// that much longer. The work is 6m units.
TEST(ZeroBubbleClosedForms, VHasNoBubbleFromTwiceTheRanksOnAtEqualTimes) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = p; m <= 5 * p; ++m) {
      SCOPED_TRACE(absl::StrCat("p ", p, " m ", m));
      const Schedule schedule = Sound("zb-v", VSpec(p, m));
      const Times times = TimesOf(schedule, Costs(1, 1, 1));
      ExpectClose(times.span, 6 * m + std::max(0, 2 * p - 1 - m));
      ExpectClose(times.makespan, 6 * m + p - 1);
      for (const std::vector<Action>& actions : schedule.rank_actions) {
        EXPECT_EQ(PeakChunks(actions), 2 * p);
      }
    }
  }
}

TEST(ZeroBubbleClosedForms, VHalfHoldsHalfForHalfTheBubble) {
  for (int p = 3; p <= 16; ++p) {
    for (int m : {p, p + 1, 2 * p, 5 * p}) {
      SCOPED_TRACE(absl::StrCat("p ", p, " m ", m));
      const Schedule schedule = Sound("v-half", VSpec(p, m));
      const Times times = TimesOf(schedule, Costs(1, 1, 1));
      // The bubble of 1F1B is p-1 times the F, I and W of both chunks: 6p-6.
      ExpectClose(times.span, 6 * m + 3 * p - (p % 2 == 0 ? 7 : 4));
      ExpectClose(times.makespan, times.span);
      int most = 0;
      for (const std::vector<Action>& actions : schedule.rank_actions) {
        most = std::max(most, PeakChunks(actions));
      }
      EXPECT_EQ(most, 2 * ((p + 2) / 2));
    }
  }
}

TEST(ZeroBubbleClosedForms, VMinHoldsAThirdForTwoThirdsOfTheBubble) {
  for (int p = 3; p <= 16; ++p) {
    for (int m : {p, p + 1, 2 * p, 5 * p}) {
      SCOPED_TRACE(absl::StrCat("p ", p, " m ", m));
      const Schedule schedule = Sound("v-min", VSpec(p, m));
      const Times times = TimesOf(schedule, Costs(1, 1, 1));
      ExpectClose(times.span, 6 * m + 4 * p - (p % 3 == 0 ? 7 : 5));
      ExpectClose(times.makespan, times.span);
      int most = 0;
      for (const std::vector<Action>& actions : schedule.rank_actions) {
        most = std::max(most, PeakChunks(actions));
      }
      EXPECT_EQ(most, 2 * ((p + 4) / 3));
    }
  }
}

// Returns the sum over a rank's stages of ceil(l / 6), where l is the number of
// slots from F to W, both included. F and I follow the paper's offsets: v-half
// moves down the ranks in steps of two slots and up in steps of one, v-min in
// steps of one both ways. A pause after the last F prevents conflicts between
// blocks that repeat every 6 slots. W fills the free slots in FIFO order.
int BlockBound(absl::string_view name, int p, int rank) {
  const bool half = name == "v-half";
  const int down = half ? 2 : 1;
  const int pause = half ? (p % 2 == 0 ? 3 : 0) : (p % 3 == 0 ? 2 : 0);
  const int turn = down * (p - 1) + 1;  // F of the last rank's second chunk
  const int forward[] = {down * rank, turn + p - 1 - rank};
  // The backward takes the same path, from the slot after the pause on.
  const int begin = turn + p - 1 + pause + 1;
  const int input[] = {begin + turn + p - 1 - rank, begin + down * rank};
  int lifespan[2] = {0, 0};
  std::deque<std::pair<int, int>> waiting;  // stage, slot of its I
  for (int slot = 0; slot < 60; ++slot) {   // long enough for a steady state
    bool is_free = true;
    for (int stage : {0, 1}) {
      is_free &= (slot - forward[stage]) % 6 != 0;
      if ((slot - input[stage]) % 6 != 0) continue;
      is_free = false;
      waiting.push_back({stage, slot});
    }
    if (!is_free || waiting.empty()) continue;
    const auto [stage, since] = waiting.front();
    waiting.pop_front();
    lifespan[stage] = input[stage] - forward[stage] + slot - since + 1;
  }
  return (lifespan[0] + 5) / 6 + (lifespan[1] + 5) / 6;
}

// Checks the paper's bound for the worst rank. The generator compacts the
// warm-up and drain of all ranks up to this memory. Rounding up two lifespans
// can overestimate the memory by one.
TEST(ZeroBubbleClosedForms, ABlocksLifespansBoundItsMemory) {
  for (absl::string_view name : {"v-half", "v-min"}) {
    for (int p = 3; p <= 16; ++p) {
      for (int m : {p, p + 1, 2 * p, 5 * p}) {
        SCOPED_TRACE(absl::StrCat(name, " p ", p, " m ", m));
        const Schedule schedule = Sound(name, VSpec(p, m));
        int most = 0, bound = 0;
        for (int rank = 0; rank < p; ++rank) {
          most = std::max(most, PeakChunks(schedule.rank_actions[rank]));
          bound = std::max(bound, BlockBound(name, p, rank));
        }
        EXPECT_LE(most, bound);
        EXPECT_GE(most, bound - 1);
      }
    }
  }
}

// A microbatch is sent between ranks 4(p-1) times in a V and 2(p-1) times in a
// line.
TEST(ZeroBubbleClosedForms, AVHasTwiceTheTransfers) {
  const auto num_transfers = [](const Schedule& schedule) {
    int count = 0;
    for (int stage = 0; stage + 1 < schedule.num_stages; ++stage) {
      count += schedule.routes[0][stage] != schedule.routes[0][stage + 1];
    }
    return 2 * count * schedule.num_microbatches;
  };
  for (int p : {1, 2, 5, 8}) {
    for (absl::string_view name : {"zb-v", "v-half", "v-min"}) {
      EXPECT_EQ(num_transfers(Generated(name, VSpec(p, 7))),
                2 * num_transfers(Generated("1f1b", {p, 7})));
    }
  }
}

// Checks that no number of microbatches exceeds the memory of the repeated
// block.
TEST(ZeroBubbleClosedForms, VHalfAndVMinNeverHoldMoreThanTheirShare) {
  for (int p = 1; p <= 20; ++p) {
    for (int m = 1; m <= 3 * p + 2; ++m) {
      SCOPED_TRACE(absl::StrCat("p ", p, " m ", m));
      for (const auto& actions : Sound("v-half", VSpec(p, m)).rank_actions) {
        EXPECT_LE(PeakChunks(actions), 2 * ((p + 2) / 2));
      }
      for (const auto& actions : Sound("v-min", VSpec(p, m)).rank_actions) {
        EXPECT_LE(PeakChunks(actions), 2 * ((p + 4) / 3));
      }
    }
  }
}

}  // namespace weir::schedules::zero_bubble_closed_forms_test
