// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/dawnpiper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/plan/papers/random_work.h"

namespace weir::plan::dawnpiper_test {

using testing::HasSubstr;

constexpr double kNever = std::numeric_limits<double>::infinity();

// Computes a stage's bytes from its layers, without the planner's sums.
double MemoryBytes(const PlannerWork& work, const PlannedStage& stage, int s,
                   int p, bool asynchronous) {
  const double kept = std::min(p - s, work.num_microbatches);
  const double versions = asynchronous ? p - s : 1;
  double state = 0, activations = 0, inputs = 0;
  for (int l = stage.first_layer; l < stage.end_layer; ++l) {
    const PlannerLayer& layer = work.layers[l];
    state += layer.state_bytes + (versions - 1) * layer.version_bytes;
    activations += layer.activation_bytes;
    inputs += layer.input_bytes;
  }
  if (stage.recompute) return state + activations + kept * inputs;
  if (stage.swap) return state + std::min(2.0, kept) * activations;
  return state + kept * activations;
}

double BruteForce(const PlannerWork& work, int p,
                  const DawnPiperOptions& options, bool* is_in_bracket) {
  double best = kNever;
  const int n = static_cast<int>(work.layers.size());
  const auto bracket = DawnPiperBracket(work, 0, n, 0, p, p, options);
  ForEachCut(n, p, [&](const std::vector<int>& first) {
    double slowest = 0;
    for (int s = 0; s < p; ++s) {
      slowest = std::max(
          slowest,
          CheapestStage(work, first[s], first[s + 1], s, p, options).seconds);
    }
    const int middle = first[(p + 1) / 2];
    const bool is_inside = bracket.first <= middle && middle <= bracket.second;
    if (slowest < best || (slowest == best && is_inside)) {
      best = slowest;
      *is_in_bracket = is_inside;
    }
  });
  return best;
}

PlannerWork Tight(Random* random, int p) {
  PlannerWork work = RandomWork(Whole(p, 10, random), 1, p, random);
  const double memory = Uniform(15, 120, random);
  for (PlannerDevice& device : work.devices) device.memory_bytes = memory;
  return work;
}

TEST(DawnPiperTest, IsNearBruteForceAndRespectsMemory) {
  Random random(1);
  Gap gap;
  int num_none = 0, num_missed = 0, num_inside = 0, num_plain = 0;
  for (int i = 0; i < 600; ++i) {
    const int p = Whole(2, 5, &random);
    const PlannerWork work = Tight(&random, p);
    DawnPiperOptions options;
    options.asynchronous = i % 2 == 1;
    options.host_bytes_per_second = i % 3 == 0 ? 0 : Uniform(5, 40, &random);
    bool is_inside = false;
    const double best = BruteForce(work, p, options, &is_inside);
    const auto plan = PlanDawnPiper(work, options);
    if (best == kNever) {
      ++num_none;
      EXPECT_EQ(plan.status().code(), absl::StatusCode::kNotFound);
      continue;
    }
    num_inside += is_inside;
    if (!plan.ok()) {
      ++num_missed;
      continue;
    }
    bool is_plain = true;
    for (int s = 0; s < p; ++s) {
      const PlannedStage& stage = plan->stages[s];
      is_plain = is_plain && !stage.recompute && !stage.swap;
      EXPECT_LE(MemoryBytes(work, stage, s, p, options.asynchronous),
                work.devices[0].memory_bytes * (1 + 1e-12));
    }
    num_plain += is_plain;
    EXPECT_GE(plan->objective_seconds * (1 + 1e-12), best);
    gap.Add(plan->objective_seconds, best);
  }
  std::printf(
      "dawnpiper: %d of %d optimal, mean gap %.2f %%, worst %.2f %%; %d plans "
      "missed, %d infeasible; first best cut in its bracket in %d; %d without "
      "recomputing or swapping\n",
      gap.num_optimal, gap.num_instances, 100 * gap.mean(), 100 * gap.worst,
      num_missed, num_none, num_inside, num_plain);
  EXPECT_GT(num_none, 20);
  EXPECT_GT(num_plain, 20);
  EXPECT_LT(num_plain, gap.num_instances);
}

TEST(DawnPiperTest, WithRoomForAllTheComputeOptimalCutsAreBestOfTwoStages) {
  Random random(2);
  for (int i = 0; i < 200; ++i) {
    const PlannerWork work = RandomWork(Whole(2, 12, &random), 1, 2, &random);
    bool is_inside = false;
    const auto plan = PlanDawnPiper(work);
    ASSERT_TRUE(plan.ok());
    EXPECT_DOUBLE_EQ(plan->objective_seconds,
                     BruteForce(work, 2, {}, &is_inside));
    EXPECT_TRUE(is_inside);
  }
}

TEST(CheapestStageTest, SwapsOverAFastLinkAndRecomputesOverASlowOne) {
  Random random(3);
  PlannerWork work = RandomWork(2, 1, 4, &random);
  PlannerLayer& layer = work.layers[0];
  layer.forward_seconds = 1;
  layer.backward_seconds = 2;
  layer.state_bytes = 4;
  layer.activation_bytes = 100;
  layer.input_bytes = 1;
  for (PlannerDevice& device : work.devices) device.memory_bytes = 204;
  DawnPiperOptions options;
  options.host_bytes_per_second = 1;
  // Two microbatches fit.
  DawnPiperStage stage = CheapestStage(work, 0, 1, 0, 2, options);
  EXPECT_FALSE(stage.recompute || stage.swap);
  EXPECT_DOUBLE_EQ(stage.seconds, 3);
  EXPECT_DOUBLE_EQ(stage.memory_bytes, 204);
  // Four do not.
  stage = CheapestStage(work, 0, 1, 0, 4, options);
  EXPECT_TRUE(stage.recompute);
  EXPECT_DOUBLE_EQ(stage.seconds, 4);
  EXPECT_DOUBLE_EQ(stage.memory_bytes, 4 + 100 + 4);
  options.host_bytes_per_second = 200. / 3.5;
  stage = CheapestStage(work, 0, 1, 0, 4, options);
  EXPECT_TRUE(stage.swap);
  EXPECT_DOUBLE_EQ(stage.seconds, 3.5);
  EXPECT_DOUBLE_EQ(stage.memory_bytes, 204);
  // Four versions are three more than one.
  options.asynchronous = true;
  layer.version_bytes = 1;
  EXPECT_EQ(CheapestStage(work, 0, 1, 0, 4, options).memory_bytes,
            4 + 3 + 100 + 4);
}

TEST(DawnPiperTest, LargestMicrobatchFitsAndTheNextDoesNot) {
  Random random(4);
  int num_grown = 0;
  for (int i = 0; i < 100; ++i) {
    PlannerWork work = Tight(&random, 3);
    work.num_microbatches = 48;
    DawnPiperOptions options;
    if (i % 2 == 1) options.recompute = RECOMPUTE_NONE;
    const auto plan = LargestDawnPiperMicrobatch(work, options);
    if (!plan.ok()) continue;
    num_grown += plan->microbatch_size > 1;
    const PlannerWork grown = WithMicrobatchSize(work, plan->microbatch_size);
    for (int s = 0; s < 3; ++s) {
      EXPECT_LE(MemoryBytes(grown, plan->stages[s], s, 3, false),
                work.devices[0].memory_bytes * (1 + 1e-12));
    }
    for (int size = plan->microbatch_size + 1; size <= 48; ++size) {
      if (48 % size != 0) continue;
      EXPECT_FALSE(PlanDawnPiper(WithMicrobatchSize(work, size), options).ok());
    }
  }
  EXPECT_GT(num_grown, 10);
}

TEST(DawnPiperTest, AllOrNoneRecomputeWhereAsked) {
  Random random(5);
  const PlannerWork work = RandomWork(8, 1, 4, &random);
  for (RecomputeMode recompute : {RECOMPUTE_NONE, RECOMPUTE_FULL}) {
    DawnPiperOptions options;
    options.recompute = recompute;
    options.host_bytes_per_second = 1;
    const auto plan = PlanDawnPiper(work, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const PlannedStage& stage : plan->stages) {
      EXPECT_EQ(stage.recompute, recompute == RECOMPUTE_FULL);
      EXPECT_FALSE(stage.swap);
    }
  }
}

TEST(DawnPiperTest, RefusesStagesThatDoNotDivideTheDevices) {
  Random random(6);
  DawnPiperOptions options;
  options.num_stages = 3;
  const auto plan = PlanDawnPiper(RandomWork(8, 1, 4, &random), options);
  EXPECT_THAT(plan.status().message(), HasSubstr("num_stages is 3"));
}

// Returns the time of the slowest stage of the best of all cuts, by dynamic
// programming over the first layers. Stages neither recompute nor swap.
double BestCut(const PlannerWork& work, int num_stages) {
  const int n = static_cast<int>(work.layers.size());
  std::vector<double> best(n + 1, kNever);
  best[0] = 0;
  for (int s = 0; s < num_stages; ++s) {
    std::vector<double> next(n + 1, kNever);
    for (int end = 1; end <= n; ++end) {
      for (int first = 0; first < end; ++first) {
        next[end] = std::min(
            next[end], std::max(best[first], PassSeconds(work, first, end)));
      }
    }
    best = next;
  }
  return best[n];
}

TEST(DawnPiperTest, APlanOfAHundredLayersOnSixtyFourDevicesIsNearTheBestCut) {
  Random random(7);
  for (int i = 0; i < 5; ++i) {
    const PlannerWork work = RandomWork(100, 8, 8, &random);
    const auto plan = PlanDawnPiper(work);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->stages.size(), 64);
    EXPECT_EQ(ExpectValidStages(work, plan->stages), 64);
    double slowest = 0;
    for (const PlannedStage& stage : plan->stages) {
      EXPECT_FALSE(stage.recompute || stage.swap);
      slowest = std::max(slowest,
                         PassSeconds(work, stage.first_layer, stage.end_layer));
    }
    EXPECT_NEAR(plan->objective_seconds, slowest, 1e-12 * slowest);
    const double best = BestCut(work, 64);
    EXPECT_GE(slowest * (1 + 1e-12), best);
    EXPECT_LE(slowest, 1.5 * best);
  }
}

TEST(DawnPiperTest, EqualLayersAreSharedEqually) {
  Random random(8);
  PlannerWork work = RandomWork(128, 8, 8, &random);
  for (PlannerLayer& layer : work.layers) layer = work.layers[0];
  const auto plan = PlanDawnPiper(work);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const PlannedStage& stage : plan->stages) {
    EXPECT_EQ(stage.end_layer - stage.first_layer, 2);
  }
  EXPECT_NEAR(plan->objective_seconds, PassSeconds(work, 0, 2), 1e-12);
}

}  // namespace weir::plan::dawnpiper_test
