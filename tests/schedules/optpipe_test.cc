// SPDX-License-Identifier: Apache-2.0
// Checks the constraints of OptPipe's schedules and their distance from the
// optimum.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/systems/generators.h"
#include "schedules/systems/offload_search.h"
#include "schedules/validate.h"
#include "schedules/walk.h"
#include "tests/schedules/offload_optimum.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::optpipe_test {

using testing::AllOf;
using testing::HasSubstr;

ScheduleSpec Spec(int p, int m, const StagePassCosts& stage, double limit) {
  ScheduleSpec spec = {.num_ranks = p, .num_microbatches = m};
  spec.costs.stages = {stage};
  spec.options["memory-limit"] = absl::StrCat(limit);
  return spec;
}

Schedule OptPipe(const ScheduleSpec& spec, bool may_offload = true) {
  ScheduleSpec full = spec;
  full.options["offload"] = may_offload ? "auto" : "never";
  absl::StatusOr<Schedule> schedule = GenerateSchedule("optpipe", full);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  const absl::Status valid = ValidateSchedule(*schedule);
  EXPECT_TRUE(valid.ok()) << valid;
  return *std::move(schedule);
}

int64_t NumOffloads(const Schedule& schedule) {
  int64_t num_offloads = 0;
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    num_offloads += std::count_if(
        actions.begin(), actions.end(),
        [](const Action& action) { return action.op == Op::kOffload; });
  }
  return num_offloads;
}

// Returns the peak memory of one rank, in the unit of the costs. Activations
// are held from the start of F to the end of O or of the backward, and again
// from the start of R; the inputs of weight gradients from the end of I to the
// end of W.
double PeakMemory(const Schedule& schedule, const PassCosts& costs,
                  const WalkTimes& times, int rank) {
  std::vector<std::pair<double, double>> changes;  // (time, change)
  const std::vector<Action>& actions = schedule.rank_actions[rank];
  for (size_t i = 0; i < actions.size(); ++i) {
    const StagePassCosts& stage = costs.of(actions[i].stage);
    const double inputs = stage.weight_gradient_inputs;
    const double start = times.start[rank][i];
    const double end = times.end[rank][i];
    switch (actions[i].op) {
      case Op::kForward:
      case Op::kReload:
        changes.emplace_back(start, stage.activation);
        break;
      case Op::kBackward:
      case Op::kOffload:
        changes.emplace_back(end, -stage.activation);
        break;
      case Op::kBackwardInput:
        changes.emplace_back(end, inputs - stage.activation);
        break;
      case Op::kBackwardWeight:
        changes.emplace_back(end, -inputs);
        break;
      case WEIR_UNSCHEDULED_OPS:
        break;
    }
  }
  std::sort(changes.begin(), changes.end());
  double memory = 0, peak = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    memory += changes[i].second;
    const bool last =
        i + 1 == changes.size() || changes[i + 1].first > changes[i].first;
    if (last) peak = std::max(peak, memory);
  }
  EXPECT_NEAR(memory, 0, 1e-9);
  return peak;
}

// Checks a limit of `limit` microbatches of the stage that needs the most
// memory.
void ExpectWithinMemory(const Schedule& schedule, const PassCosts& costs,
                        double limit) {
  double largest = 0;
  for (const StagePassCosts& stage : costs.stages) {
    largest =
        std::max({largest, stage.activation, stage.weight_gradient_inputs});
  }
  const WalkTimes times = TimedWalk(schedule, costs);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    EXPECT_LE(PeakMemory(schedule, costs, times, rank),
              limit * largest * (1 + 1e-8))
        << "rank " << rank;
  }
}

// Checks that the compute stream and each channel run one action at a time, and
// that offloaded activations are reloaded before their backward.
void ExpectOneAtATime(const Schedule& schedule, const WalkTimes& times) {
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    double compute = 0, offload = 0, reload = 0;
    std::map<int, double> offloaded, reloaded;
    const std::vector<Action>& actions = schedule.rank_actions[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      double& stream = IsCompute(action.op)        ? compute
                       : action.op == Op::kOffload ? offload
                                                   : reload;
      EXPECT_GE(times.start[rank][i], stream) << ToString(action);
      stream = times.end[rank][i];
      if (action.op == Op::kOffload) offloaded[action.microbatch] = stream;
      if (action.op == Op::kReload) {
        EXPECT_GE(times.start[rank][i], offloaded.at(action.microbatch));
        reloaded[action.microbatch] = stream;
      }
      if (MakesInputGradient(action.op) &&
          offloaded.contains(action.microbatch)) {
        EXPECT_GE(times.start[rank][i], reloaded.at(action.microbatch));
      }
    }
  }
}

// Returns unequal stages with random costs.
ScheduleSpec RandomSpec(std::mt19937* random) {
  const auto number = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(*random);
  };
  const auto whole = [&](int low, int high) {
    return std::uniform_int_distribution<>(low, high)(*random);
  };
  ScheduleSpec spec = {.num_ranks = whole(1, 6),
                       .num_microbatches = whole(1, 12)};
  for (int s = 0; s < spec.num_ranks; ++s) {
    StagePassCosts stage = {.forward = number(0.5, 2),
                            .backward_input = number(0.5, 2),
                            .backward_weight = number(0, 2),
                            .offload = number(0, 4),
                            .activation = number(50, 100),
                            .weight_gradient_inputs = number(0, 120)};
    if (whole(0, 1) == 1) stage.backward = number(1, 4);
    spec.costs.stages.push_back(stage);
  }
  spec.costs.hop = number(0, 1);
  spec.options["memory-limit"] = absl::StrCat(number(1, spec.num_ranks + 1));
  return spec;
}

double LimitOf(const ScheduleSpec& spec) {
  return std::stod(spec.options.at("memory-limit"));
}

TEST(OptPipeTest, MemoryHoldsAtAnyTimes) {
  std::mt19937 random(1);
  int64_t num_offloads = 0;
  for (int i = 0; i < 60; ++i) {
    const ScheduleSpec spec = RandomSpec(&random);
    const Schedule schedule = OptPipe(spec);
    num_offloads += NumOffloads(schedule);
    ExpectWithinMemory(schedule, spec.costs, LimitOf(spec));
    // With the same order on other machines, only the held activations are
    // equal.
    for (int j = 0; j < 3; ++j) {
      PassCosts others = spec.costs;
      for (StagePassCosts& stage : others.stages) {
        for (double* seconds : {&stage.forward, &stage.backward_input,
                                &stage.backward_weight, &stage.offload}) {
          *seconds = std::uniform_real_distribution<>(0, 5)(random);
        }
      }
      ExpectWithinMemory(schedule, others, LimitOf(spec));
    }
  }
  EXPECT_GT(num_offloads, 100);
}

TEST(OptPipeTest, StreamsAndChannelsDoOneThingAtATime) {
  std::mt19937 random(2);
  for (int i = 0; i < 40; ++i) {
    const ScheduleSpec spec = RandomSpec(&random);
    const Schedule schedule = OptPipe(spec);
    ExpectOneAtATime(schedule, TimedWalk(schedule, spec.costs));
  }
}

// The search ranks policies by the times that the greedy algorithm computes.
TEST(OptPipeTest, GreedyKnowsItsTimes) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    const ScheduleSpec spec = RandomSpec(&random);
    const auto one_of = [&](std::vector<double> values) {
      return values[random() % values.size()];
    };
    const OffloadPolicy policy = {.split = random() % 2 == 0,
                                  .warmup = one_of({-0.5, 0, 0.5, 1}),
                                  .deferred = one_of({0, 1, 1e9}),
                                  .forward_first = random() % 2 == 0,
                                  .only_whole_gaps = random() % 2 == 0,
                                  .reserved = static_cast<int>(random() % 3),
                                  .transit = static_cast<int>(random() % 4),
                                  .lookahead = static_cast<int>(random() % 3),
                                  .spread = random() % 2 == 0};
    OffloadOrder order = OrderWithOffload(spec, LimitOf(spec), policy);
    Schedule schedule = EmptySchedule("greedy", spec);
    schedule.rank_actions = order.rank_actions;
    schedule.resident_activations = order.resident_activations;
    ASSERT_TRUE(ValidateSchedule(schedule).ok()) << ValidateSchedule(schedule);
    const WalkTimes times = TimedWalk(schedule, spec.costs);
    EXPECT_NEAR(order.speed.makespan, times.makespan(), 1e-9);
    EXPECT_EQ(order.speed.num_offloads, NumOffloads(schedule));
    ExpectWithinMemory(schedule, spec.costs, LimitOf(spec));
  }
}

TEST(OptPipeTest, OffloadingNeverCosts) {
  std::mt19937 random(4);
  for (int i = 0; i < 40; ++i) {
    const ScheduleSpec spec = RandomSpec(&random);
    const Schedule without = OptPipe(spec, false);
    EXPECT_EQ(NumOffloads(without), 0);
    EXPECT_LE(TimedWalk(OptPipe(spec), spec.costs).makespan(),
              TimedWalk(without, spec.costs).makespan());
  }
}

TEST(OptPipeTest, NeverSlowerThanZeroBubbleAtTheSameLimit) {
  std::mt19937 random(5);
  for (int i = 0; i < 40; ++i) {
    ScheduleSpec spec = RandomSpec(&random);
    const double found = TimedWalk(OptPipe(spec), spec.costs).makespan();
    const Schedule zero_bubble = Generated("zb-1p", spec);
    ExpectWithinMemory(zero_bubble, spec.costs, LimitOf(spec));
    EXPECT_LE(found, TimedWalk(zero_bubble, spec.costs).makespan());
  }
}

TEST(OptPipeTest, NeverSlowerThan1F1BInItsMemory) {
  for (int p : {1, 2, 4, 7}) {
    for (int m : {1, 3, 8, 20}) {
      const ScheduleSpec spec = Spec(p, m, {.forward = 1.1}, p);
      const double one_f_one_b =
          TimedWalk(Generated("1f1b", spec), spec.costs).makespan();
      EXPECT_LE(TimedWalk(OptPipe(spec), spec.costs).makespan(), one_f_one_b);
    }
  }
}

// Half of the memory of 1F1B, and a host link that takes as long as three
// passes.
TEST(OptPipeTest, OffloadingRemovesMostOfTheIdleTime) {
  const ScheduleSpec spec = Spec(8, 24, {.offload = 3}, 4);
  const double least = 7 + 24 * 3;  // the last rank's wait and work
  const double without = TimedWalk(OptPipe(spec, false), spec.costs).makespan();
  const double with = TimedWalk(OptPipe(spec), spec.costs).makespan();
  EXPECT_EQ(without, 117);
  EXPECT_LE(with, 85);
  EXPECT_GE(with, least);
}

TEST(OptPipeTest, NoBubbleBeyondTheFirstWaitWhereMemoryIsAmple) {
  for (int p : {2, 4, 8}) {
    const int m = 3 * p;
    const ScheduleSpec spec = Spec(p, m, {}, 2 * p);
    EXPECT_EQ(TimedWalk(OptPipe(spec), spec.costs).makespan(), p - 1 + 3 * m);
  }
}

TEST(OptPipeTest, SlowLinkIsNotUsed) {
  EXPECT_EQ(NumOffloads(OptPipe(Spec(4, 8, {.offload = 1000}, 2))), 0);
}

TEST(OptPipeTest, OrderIsForTheCostsThatAreGiven) {
  const ScheduleSpec fast = Spec(4, 8, {.offload = 1}, 2);
  const ScheduleSpec slow = Spec(4, 8, {.offload = 1000}, 2);
  EXPECT_NE(OptPipe(fast).rank_actions, OptPipe(slow).rank_actions);
}

TEST(OptPipeTest, RefusesOptionsAndCostsOutOfRange) {
  ScheduleSpec spec = {.num_ranks = 2, .num_microbatches = 4, .num_chunks = 2};
  spec.num_batches = 3;
  spec.options = {{"memory-limit", "0.5"}, {"offload", "always"}};
  spec.costs.hop = -1;
  spec.costs.stages.resize(3);
  spec.costs.stages[1].activation = -1;
  spec.costs.stages[2].offload = std::numeric_limits<double>::quiet_NaN();
  const absl::Status status = GenerateSchedule("optpipe", spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("chunks is 2"), HasSubstr("num_batches is 3"),
            HasSubstr("memory-limit is '0.5'"),
            HasSubstr("offload is 'always'"), HasSubstr("costs.hop is -1"),
            HasSubstr("costs.stages has 3"),
            HasSubstr("costs.stages[1].activation is -1"),
            HasSubstr("costs.stages[2].offload is nan")));
}

TEST(OffloadOptimumTest, IsWhatWasWorkedOutByHand) {
  const int64_t ample = 1'000'000;
  // One rank works without a gap.
  EXPECT_EQ(ShortestBatch({.num_ranks = 1, .num_microbatches = 3}, ample), 9);
  // All forwards, all input gradients, then the first rank's weight gradient.
  EXPECT_EQ(ShortestBatch({.num_ranks = 3, .num_microbatches = 1}, ample), 7);
  // One activation and no host: 0F 1F 1I 0I and 0W, then again.
  EXPECT_EQ(
      ShortestBatch(
          {.num_ranks = 2, .num_microbatches = 2, .offload = 0, .memory = 1},
          ample),
      10);
  // With offloads of two units: 0F0 is offloaded by 3, 0F1 runs until 4 and is
  // offloaded by 6, 0R0 ends at 8, 0I0 and 0W0 at 10: offloading is no faster.
  EXPECT_EQ(
      ShortestBatch(
          {.num_ranks = 2, .num_microbatches = 2, .offload = 2, .memory = 1},
          ample),
      10);
  // With enough memory: 1F 1I 1F 1I 1W 1W from 1 on, and 0W1 ends at the same
  // time.
  EXPECT_EQ(ShortestBatch({.num_ranks = 2, .num_microbatches = 2}, ample), 7);
  EXPECT_EQ(ShortestBatch({.num_ranks = 3, .num_microbatches = 4}, 10),
            std::nullopt);
}

// For 420 problems with up to 3 ranks and 4 microbatches, which include these,
// two schedules are not optimal: 17 instead of 16, which is tested here. The
// tolerance is one unit of 12, the smallest optimum in this test with
// offloading.
TEST(OptPipeTest, NearlyAlwaysAnOptimumOfSmallShapes) {
  int num_problems = 0, num_optimal = 0, num_offloading = 0;
  for (const auto& [forward, backward_input, backward_weight] :
       {std::array{1, 1, 1}, {2, 3, 1}, {1, 2, 1}}) {
    for (int p : {2, 3}) {
      for (int m : {2, 3, 4}) {
        for (int limit = 1; limit <= std::min(p, m); ++limit) {
          for (int offload : {1, 2, 4}) {
            const int seconds = forward + backward_input + backward_weight;
            SCOPED_TRACE(absl::StrCat("p ", p, " m ", m, " limit ", limit,
                                      " offload ", offload, " F+I+W ",
                                      seconds));
            const auto optimum =
                ShortestBatch({.num_ranks = p,
                               .num_microbatches = m,
                               .forward = forward,
                               .backward_input = backward_input,
                               .backward_weight = backward_weight,
                               .offload = offload,
                               .activation = 2,
                               .weight_gradient_inputs = 1,
                               .memory = 2 * limit},
                              300'000);
            if (!optimum.has_value()) continue;  // only p 3, m 4
            const ScheduleSpec spec =
                Spec(p, m,
                     {.forward = 1.0 * forward,
                      .backward_input = 1.0 * backward_input,
                      .backward_weight = 1.0 * backward_weight,
                      .offload = 1.0 * offload,
                      .activation = 2,
                      .weight_gradient_inputs = 1},
                     limit);
            const Schedule schedule = OptPipe(spec);
            const double found = TimedWalk(schedule, spec.costs).makespan();
            EXPECT_GE(found, *optimum);
            EXPECT_LE(found, *optimum * 13 / 12.0);
            ++num_problems;
            num_offloading += NumOffloads(schedule) > 0;
            num_optimal += found == *optimum;
          }
        }
      }
    }
  }
  EXPECT_GE(num_problems, 120);  // the search for the other six takes long
  EXPECT_GE(num_offloading, 40);
  EXPECT_GE(num_optimal, num_problems - 2);
}

}  // namespace weir::schedules::optpipe_test
