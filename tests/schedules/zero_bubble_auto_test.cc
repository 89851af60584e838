// SPDX-License-Identifier: Apache-2.0
// Tests the automatic Zero Bubble schedules: small ones in full, and properties
// that hold for any costs, limits and shapes.
#include <algorithm>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/validate.h"
#include "schedules/walk.h"
#include "tests/schedules/closed_form.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::zero_bubble_auto_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Cases {
 public:
  explicit Cases(int seed) : random_(seed) {}

  int Int(int low, int high) {
    return std::uniform_int_distribution<>(low, high)(random_);
  }
  double Real(double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random_);
  }

  ScheduleSpec Next(int num_chunks) {
    ScheduleSpec spec;
    spec.num_ranks = Int(1, 9);
    spec.num_microbatches = Int(1, 30);
    spec.num_chunks = num_chunks;
    const int num_stages = Int(0, 2) == 0 ? 1 : spec.num_ranks * num_chunks;
    // Integers create ties; a pass may take no time.
    const bool whole = Int(0, 2) == 0;
    const auto cost = [&] { return whole ? Int(0, 4) : Real(0.1, 3); };
    for (int s = 0; s < num_stages; ++s) {
      StagePassCosts stage;
      stage.forward = cost();
      stage.backward_input = cost();
      stage.backward_weight = cost();
      stage.activation = cost();
      stage.weight_gradient_inputs = cost();
      spec.costs.stages.push_back(stage);
    }
    spec.costs.hop = Int(0, 2) == 0 ? 0 : Real(0, 4);
    return spec;
  }

 private:
  std::mt19937 random_;
};

double LargestMemory(const ScheduleSpec& spec) {
  double largest = 0;
  for (const StagePassCosts& stage : spec.costs.stages) {
    largest =
        std::max({largest, stage.activation, stage.weight_gradient_inputs});
  }
  return largest;
}

// Returns the peak memory of any rank.
double PeakHeld(const Schedule& schedule, const PassCosts& costs) {
  double peak = 0;
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    double held = 0;
    for (const Action& action : actions) {
      const StagePassCosts& stage = costs.of(action.stage);
      if (action.op == Op::kForward) held += stage.activation;
      if (action.op == Op::kBackwardInput) {
        held += stage.weight_gradient_inputs - stage.activation;
      }
      if (action.op == Op::kBackwardWeight) {
        held -= stage.weight_gradient_inputs;
      }
      peak = std::max(peak, held);
    }
  }
  return peak;
}

// Returns a lower bound on the span of any order: the larger of the most work
// of any rank and the time of one microbatch through all stages and back.
double LeastSpan(const Schedule& schedule, const PassCosts& costs) {
  double least = 0;
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    double work = 0;
    for (const Action& action : actions) work += costs.duration(action);
    least = std::max(least, work);
  }
  double way = 0;
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    way += costs.of(stage).forward + costs.of(stage).backward_input;
    if (stage > 0 && schedule.routes[0][stage] != schedule.routes[0][stage - 1])
      way += 2 * costs.hop;
  }
  return std::max(least, way);
}

void ExpectSoundWithin(const ScheduleSpec& spec, absl::string_view name,
                       double memory_limit) {
  const Schedule schedule = Generated(name, spec);
  ASSERT_TRUE(ValidateSchedule(schedule).ok()) << ValidateSchedule(schedule);
  const double limit = memory_limit * spec.num_chunks * LargestMemory(spec);
  EXPECT_LE(PeakHeld(schedule, spec.costs), limit * (1 + 1e-9));
  const double span = TimedWalk(schedule, spec.costs).span();
  EXPECT_GE(span * (1 + 1e-9), LeastSpan(schedule, spec.costs));
}

TEST(ZeroBubbleAutoTest, NoOrderExceedsItsMemoryLimit) {
  Cases cases(1);
  for (int i = 0; i < 4000; ++i) {
    ScheduleSpec spec = cases.Next(1);
    SCOPED_TRACE(absl::StrCat("case ", i, " p ", spec.num_ranks, " m ",
                              spec.num_microbatches));
    ExpectSoundWithin(spec, "zb-1p", spec.num_ranks);
    ExpectSoundWithin(spec, "zb-2p", 2 * spec.num_ranks);
    const double limit = cases.Real(1, 3 * spec.num_ranks);
    ExpectSoundWithin(spec, absl::StrCat("zb-1p:memory-limit=", limit), limit);
    if (HasFailure()) return;
  }
}

TEST(ZeroBubbleAutoTest, NoVExceedsItsMemoryLimit) {
  Cases cases(2);
  for (int i = 0; i < 2000; ++i) {
    ScheduleSpec spec = cases.Next(2);
    SCOPED_TRACE(absl::StrCat("case ", i, " p ", spec.num_ranks, " m ",
                              spec.num_microbatches));
    ExpectSoundWithin(spec, "zb-v", spec.num_ranks);
    const double limit = cases.Real(spec.num_ranks, 3 * spec.num_ranks);
    ExpectSoundWithin(spec, absl::StrCat("zb-v:memory-limit=", limit), limit);
    if (HasFailure()) return;
  }
}

TEST(ZeroBubbleAutoTest, OneMicrobatchOfMemoryIsOneMicrobatchAtATime) {
  const Schedule schedule = Generated("zb-1p:memory-limit=1", {2, 2});
  EXPECT_EQ(PrintCsv(schedule),
            "0F0,0I0,0W0,0F1,0I1,0W1\n1F0,1I0,1W0,1F1,1I1,1W1\n");
}

TEST(ZeroBubbleAutoTest, TheLimitIsAllThatTellsOnePFromTwoP) {
  Cases cases(3);
  for (int i = 0; i < 50; ++i) {
    const ScheduleSpec spec = cases.Next(1);
    EXPECT_EQ(
        Generated("zb-2p", spec).rank_actions,
        Generated(absl::StrCat("zb-1p:memory-limit=", 2 * spec.num_ranks), spec)
            .rank_actions);
  }
}

// All passes take 1. With 1F1B's memory, the order is ZB-H1. With twice as much
// it is ZB-H2, except that the last rank runs all its W at the end.
TEST(ZeroBubbleAutoTest, SmallOrdersInALine) {
  constexpr absl::string_view kH1 =
      "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0F3,0I2,0W2,0I3,0W3\n"
      "1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1F3,1I3,1W2,1W3\n";
  EXPECT_EQ(PrintCsv(Generated("zb-h1", {2, 4})), kH1);
  EXPECT_EQ(PrintCsv(Generated("zb-1p", {2, 4})), kH1);
  EXPECT_EQ(PrintCsv(Generated("zb-h2", {2, 4})),
            "0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3\n"
            "1F0,1I0,1F1,1I1,1F2,1I2,1W0,1F3,1I3,1W1,1W2,1W3\n");
  EXPECT_EQ(PrintCsv(Generated("zb-2p", {2, 4})),
            "0F0,0F1,0F2,0I0,0F3,0W0,0I1,0W1,0I2,0W2,0I3,0W3\n"
            "1F0,1I0,1F1,1I1,1F2,1I2,1F3,1I3,1W0,1W1,1W2,1W3\n");
}

// Rank 0 has stages 0 and 3, rank 1 has stages 1 and 2.
TEST(ZeroBubbleAutoTest, SmallOrdersInAV) {
  EXPECT_EQ(PrintCsv(Generated("zb-v", {2, 3, 2})),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0I0,0W0,3F2,3I2,0I1,3W2,0I2,"
            "0W1,0W2\n"
            "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,1I1,2I2,1I2,2W1,1W1,"
            "2W2,1W2\n");
  EXPECT_EQ(PrintCsv(Generated("v-half", {2, 3, 2})),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,0I0,3W1,0W0,3F2,3I2,0I1,3W2,0I2,"
            "0W1,0W2\n"
            "1F0,2F0,1F1,2F1,2I0,2W0,1I0,1W0,1F2,2F2,2I1,1I1,2I2,1I2,2W1,1W1,"
            "2W2,1W2\n");
  EXPECT_EQ(PrintCsv(Generated("v-min", {2, 3, 2})),
            "0F0,0F1,3F0,3I0,3W0,0I0,0W0,3F1,3I1,3W1,0F2,0I1,0W1,3F2,3I2,3W2,"
            "0I2,0W2\n"
            "1F0,2F0,1F1,2I0,1I0,2F1,2W0,1W0,2I1,1I1,1F2,2F2,2W1,1W1,2I2,1I2,"
            "2W2,1W2\n");
}

TEST(ZeroBubbleAutoTest, ImpossibleLimitsAreRefused) {
  for (absl::string_view limit : {"0.9", "0", "-3", "nan", "inf", "much", ""}) {
    const std::string option = absl::StrCat(":memory-limit=", limit);
    EXPECT_THAT(ErrorOf(absl::StrCat("zb-1p", option), {4, 8}),
                HasSubstr(absl::StrCat("memory-limit is '", limit,
                                       "', expected a number from 1 to ")));
    EXPECT_THAT(ErrorOf(absl::StrCat("zb-2p", option), {4, 8}),
                HasSubstr("expected a number from 1 to "));
  }
  EXPECT_THAT(ErrorOf("zb-v:memory-limit=3.5", {4, 8, 2}),
              HasSubstr("memory-limit is '3.5', expected a number from 4 to "));
  EXPECT_THAT(ErrorOf("zb-h1:memory-limit=4", {4, 8}),
              HasSubstr("option 'memory-limit' is unknown"));
}

TEST(ZeroBubbleAutoTest, ImpossibleCostsAreRefused) {
  ScheduleSpec spec = {4, 8};
  spec.costs.stages.resize(3);
  spec.costs.stages[1].forward = -1;
  spec.costs.stages[2].weight_gradient_inputs =
      std::numeric_limits<double>::quiet_NaN();
  spec.costs.hop = std::numeric_limits<double>::infinity();
  for (absl::string_view name : {"zb-1p", "zb-2p", "zb-v"}) {
    EXPECT_THAT(ErrorOf(name, spec),
                AllOf(HasSubstr("costs.stages has 3, expected"),
                      HasSubstr("costs.stages[1].forward is -1"),
                      HasSubstr("costs.stages[2].weight_gradient_inputs is"),
                      HasSubstr("costs.hop is inf")));
  }
}

TEST(ZeroBubbleAutoTest, AVNeedsTwoChunksAndALineOne) {
  for (absl::string_view name : {"zb-v", "v-half", "v-min"}) {
    for (int chunks : {1, 3}) {
      EXPECT_THAT(
          ErrorOf(name, {4, 8, chunks, 2}),
          AllOf(HasSubstr(absl::StrCat("chunks is ", chunks, ", expected 2")),
                HasSubstr("num_batches is 2, expected 1")));
    }
  }
  for (absl::string_view name : {"zb-h1", "zb-h2", "zb-1p", "zb-2p"}) {
    EXPECT_THAT(ErrorOf(name, {4, 8, 2, 2}),
                AllOf(HasSubstr("chunks is 2, expected 1"),
                      HasSubstr("num_batches is 2, expected 1")));
  }
}

TEST(ZeroBubbleAutoTest, AllThreePassesCountAgainstTheLimit) {
  EXPECT_THAT(ErrorOf("zb-h1", {10'000, 15'000}),
              HasSubstr("result in 4.5e+08 actions, expected at most 4e+08"));
  // A machine with little memory may still refuse it.
  const absl::Status two =
      FindScheduleKind("1f1b").value()->check({10'000, 15'000});
  EXPECT_THAT(two.message(), Not(HasSubstr("actions, expected at most")));
}

TEST(ZeroBubbleAutoTest, OtherToolsNamesAreKnown) {
  const auto name_of = [](absl::string_view name) {
    return FindScheduleKind(name).value()->name;
  };
  EXPECT_EQ(name_of("ZBVZeroBubble"), "zb-v");
  EXPECT_EQ(name_of("zbv"), "zb-v");
  EXPECT_EQ(name_of("vhalf"), "v-half");
  EXPECT_EQ(name_of("vmin"), "v-min");
}

}  // namespace weir::schedules::zero_bubble_auto_test
