// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/dapple.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "schedules/registry.h"
#include "schedules/walk.h"
#include "tests/plan/papers/random_work.h"

namespace weir::plan::dapple_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr double kNever = std::numeric_limits<double>::infinity();

DappleOptions PublicRates() {
  DappleOptions options;
  options.between_bytes_per_second = 1e9;
  options.between_all_reduce_bytes_per_second = 3e9;
  options.inside_bytes_per_second = 25e9;
  return options;
}

// Returns two servers with eight devices, as in the public tests.
PlannerWork TwoServers() {
  Random random(1);
  return RandomWork(2, 2, 8, &random);
}

std::vector<int> Range(int first, int end) {
  std::vector<int> devices(end - first);
  std::iota(devices.begin(), devices.end(), first);
  return devices;
}

TEST(DappleTransferTest, TakesWhatThePublicTestsSay) {
  const PlannerWork work = TwoServers();
  const DappleOptions options = PublicRates();
  EXPECT_DOUBLE_EQ(
      DappleTransferSeconds(work, Range(0, 4), Range(4, 8), 1e9, options),
      1 / 25.);
  EXPECT_DOUBLE_EQ(
      DappleTransferSeconds(work, {0, 1, 8, 9}, Range(10, 14), 1e9, options),
      0.5);
  EXPECT_DOUBLE_EQ(
      DappleTransferSeconds(work, Range(0, 4), Range(6, 10), 1e9, options),
      1 / 3.);
}

TEST(DappleAllReduceTest, TakesWhatThePublicTestsSay) {
  const PlannerWork work = TwoServers();
  const DappleOptions options = PublicRates();
  EXPECT_DOUBLE_EQ(DappleAllReduceSeconds(work, Range(0, 8), 1e9, options),
                   2 * 7 / 8. / 25 / 4);
  EXPECT_DOUBLE_EQ(DappleAllReduceSeconds(work, Range(1, 9), 1e9, options),
                   2 * 7 / 8. / 3);
  EXPECT_EQ(DappleAllReduceSeconds(work, {3}, 1e9, options), 0);
}

TEST(DapplePlacementsTest, AreFreshAppendedAndScattered) {
  EXPECT_THAT(DapplePlacements({4, 4}, {0, 0}, 4),
              ElementsAre(ElementsAre(4, 0), ElementsAre(2, 2)));
  EXPECT_THAT(DapplePlacements({4, 4}, {1, 0}, 4),
              ElementsAre(ElementsAre(0, 4), ElementsAre(3, 1)));
  EXPECT_THAT(DapplePlacements({4, 4, 4}, {1, 2, 0}, 3),
              ElementsAre(ElementsAre(0, 0, 3), ElementsAre(3, 0, 0),
                          ElementsAre(2, 1, 0)));
  EXPECT_TRUE(DapplePlacements({4, 4}, {4, 2}, 3).empty());
}

TEST(DappleSecondsTest, IsThePublicPlannersSum) {
  PlannerWork work = TwoServers();
  work.num_microbatches = 10;
  work.layers[0].forward_seconds = 8;
  work.layers[0].backward_seconds = 16;
  work.layers[1].forward_seconds = 10;
  work.layers[1].backward_seconds = 22;
  work.layers[0].output_bytes = 1e9;
  work.layers[0].gradient_bytes = 400e9;   // 7 s inside a server
  work.layers[1].gradient_bytes = 1600e9;  // 28 s
  const std::vector<PlannedStage> stages = {Stage(0, 1, Range(0, 8)),
                                            Stage(1, 2, Range(8, 16))};
  // 9 blocks of 4 s, all layers once (56 s), 1 s of transfer at the cut, and
  // the longer of the all-reduces of 7 s and 28 - 4 s.
  EXPECT_DOUBLE_EQ(DappleSeconds(work, stages, 1, PublicRates()),
                   4 * 9 + 56 + 1 + 24);
  // With eight replicas, there is one more step, with a whole stage as its
  // block.
  work.num_microbatches = 16;
  EXPECT_DOUBLE_EQ(DappleSeconds(work, stages, 8, PublicRates()),
                   32 * 1 + 56 + 1 + 7);
}

// For a plain pipeline, the pivot's length is a lower bound for every order,
// and at least as large as the bounds from the busiest stage and from one
// microbatch.
TEST(DapplePivotTest, IsBetweenTheSimpleBoundsAndTheReplay) {
  Random random(2);
  for (int i = 0; i < 500; ++i) {
    const int p = Whole(1, 6, &random), m = Whole(1, 12, &random);
    std::vector<double> f, b, none(p);
    schedules::ScheduleSpec spec;
    spec.num_ranks = p;
    spec.num_microbatches = m;
    schedules::PassCosts costs;
    double once = 0, busiest = 0;
    for (int s = 0; s < p; ++s) {
      f.push_back(Uniform(0.1, 2, &random));
      b.push_back(Uniform(0.1, 2, &random));
      schedules::StagePassCosts stage;
      stage.forward = f[s];
      stage.backward = b[s];
      costs.stages.push_back(stage);
      once += f[s] + b[s];
      busiest = std::max(busiest, m * (f[s] + b[s]));
    }
    const double length = DapplePivotSeconds(f, b, none, m);
    EXPECT_GE(length * (1 + 1e-12), std::max(once, busiest));
    for (const char* name : {"dapple-pa", "dapple-pb"}) {
      EXPECT_LE(length, schedules::TimedWalk(
                            *schedules::GenerateSchedule(name, spec), costs)
                                .makespan() *
                            (1 + 1e-12));
    }
  }
}

TEST(DapplePivotTest, OfEqualStagesIsTheClosedForm) {
  for (int p = 1; p < 6; ++p) {
    const std::vector<double> f(p, 1), b(p, 2), none(p);
    EXPECT_DOUBLE_EQ(DapplePivotSeconds(f, b, none, 10), (10 + p - 1) * 3);
  }
}

TEST(DapplePivotTest, AddsTheAllReduceThatEndsLast) {
  // The first stage is the pivot. Its last backward ends at 40. The last
  // backward of the second stage started at 36 and ended earlier.
  EXPECT_DOUBLE_EQ(DapplePivotSeconds({2, 1}, {2, 1}, {0, 0}, 10), 40);
  EXPECT_DOUBLE_EQ(DapplePivotSeconds({2, 1}, {2, 1}, {3, 4}, 10), 43);
  EXPECT_DOUBLE_EQ(DapplePivotSeconds({2, 1}, {2, 1}, {0, 9}, 10), 47);
}

// Tries all cuts, numbers of devices and placements that the planner considers.
double BruteForce(const PlannerWork& work, const DappleOptions& options,
                  int spread) {
  const int units = static_cast<int>(work.devices.size()) / spread;
  const int per_server = static_cast<int>(
      std::count_if(work.devices.begin(), work.devices.end(),
                    [](const PlannerDevice& d) { return d.server == 0; }));
  const std::vector<int> sizes(work.devices.size() / per_server, per_server);
  double best = kNever;
  std::function<void(int, int, const std::vector<int>&,
                     const std::vector<PlannedStage>&)>
      extend = [&](int layer, int left, const std::vector<int>& used,
                   const std::vector<PlannedStage>& stages) {
        if (layer == static_cast<int>(work.layers.size())) {
          best = std::min(best, DappleSeconds(work, stages, spread, options));
          return;
        }
        for (int end = layer + 1; end <= static_cast<int>(work.layers.size());
             ++end) {
          for (int count = 1; count <= left; ++count) {
            for (const auto& placed :
                 DapplePlacements(sizes, used, count * spread)) {
              std::vector<int> sum = used;
              PlannedStage stage = Stage(layer, end, {});
              for (size_t i = 0; i < sum.size(); ++i) {
                for (int k = 0; k < placed[i]; ++k) {
                  stage.devices.push_back(static_cast<int>(i) * per_server +
                                          sum[i]++);
                }
              }
              std::vector<PlannedStage> more = stages;
              more.push_back(stage);
              extend(end, left - count, sum, more);
            }
          }
        }
      };
  extend(0, units, std::vector<int>(sizes.size()), {});
  return best;
}

class DappleGapTest : public testing::TestWithParam<bool> {};

TEST_P(DappleGapTest, IsNearBruteForce) {
  Random random(3);
  Gap gap;
  for (int i = 0; i < 200; ++i) {
    PlannerWork work =
        RandomWork(Whole(1, 6, &random), 2, Whole(1, 3, &random), &random);
    if (i % 2 == 1) {
      for (PlannerLayer& layer : work.layers) layer.gradient_bytes *= 10;
    }
    DappleOptions options = WithRates(work, {});
    options.paper_length = GetParam();
    const auto plan = PlanDapple(work, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    double best = kNever;
    const int n = static_cast<int>(work.devices.size());
    for (int spread = 1; spread <= n; ++spread) {
      if (n % spread == 0 && work.num_microbatches % spread == 0) {
        best = std::min(best, BruteForce(work, options, spread));
      }
    }
    EXPECT_GE(plan->objective_seconds * (1 + 1e-12), best);
    gap.Add(plan->objective_seconds, best);
    double once = 0;
    for (const PlannerLayer& layer : work.layers) {
      once += layer.forward_seconds + layer.backward_seconds;
    }
    EXPECT_GE(plan->objective_seconds * (1 + 1e-12),
              work.num_microbatches * once / n);
  }
  std::printf("dapple, %s: %d of %d optimal, mean gap %.2f %%, worst %.2f %%\n",
              GetParam() ? "paper's length" : "public planner's length",
              gap.num_optimal, gap.num_instances, 100 * gap.mean(),
              100 * gap.worst);
}

INSTANTIATE_TEST_SUITE_P(Lengths, DappleGapTest, testing::Bool());

TEST(PlanDappleTest, EqualReplicasAreEqual) {
  Random random(4);
  for (int i = 0; i < 100; ++i) {
    const PlannerWork work = RandomWork(Whole(2, 8, &random), 2, 2, &random);
    DappleOptions options;
    options.equal_replicas = true;
    const auto plan = PlanDapple(work, options);
    ASSERT_TRUE(plan.ok());
    for (const PlannedStage& stage : plan->stages) {
      EXPECT_EQ(stage.devices.size(), plan->stages[0].devices.size());
    }
  }
}

// Returns four equal layers with 10 bytes of activations and 100 bytes of
// state.
PlannerWork Chain(double memory_bytes, double cut_bytes) {
  Random random(5);
  PlannerWork work = RandomWork(4, 1, 4, &random);
  for (PlannerLayer& layer : work.layers) {
    layer.forward_seconds = layer.backward_seconds = 1;
    layer.activation_bytes = 10;
    layer.state_bytes = 100;
    layer.gradient_bytes = 1e6;
    layer.output_bytes = cut_bytes;
  }
  for (PlannerDevice& device : work.devices) {
    device.memory_bytes = memory_bytes;
  }
  return work;
}

TEST(PlanDappleTest, ChoosesThePolicyByCommunicationAndMemory) {
  EXPECT_EQ(PlanDapple(Chain(1e9, 0.5))->schedule, "dapple-pa");
  EXPECT_EQ(PlanDapple(Chain(1e9, 5))->schedule, "dapple-pb");
  EXPECT_EQ(PlanDapple(Chain(165, 5))->schedule, "dapple-pb:memory-limit=6");
  EXPECT_EQ(PlanDapple(Chain(135, 5))->schedule, "dapple-pa:memory-limit=3");
  const auto none = PlanDapple(Chain(99, 5));
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
}

// Of a single stage, the length is (M-1) blocks, all layers once and an
// all-reduce over the slowest link, for every number of replicas of the
// pipeline. No plan is shorter than one microbatch or its busiest stage.
TEST(PlanDappleTest, APlanOfAHundredLayersOnSixtyFourDevicesIsNotLonger) {
  Random random(6);
  int num_cut = 0;
  for (const double gradients : {0.1, 10.0}) {
    PlannerWork work = RandomWork(100, 8, 8, &random);
    for (PlannerLayer& layer : work.layers) layer.gradient_bytes *= gradients;
    const auto plan = PlanDapple(work);
    ASSERT_TRUE(plan.ok()) << plan.status();
    // The public length does not divide the first microbatch by the devices, so
    // more of them may not pay.
    EXPECT_LE(ExpectValidStages(work, plan->stages), 64);
    num_cut += plan->stages.size() > 1;
    const int m = work.num_microbatches;
    const double once = PassSeconds(work, 0, 100);
    double alone = kNever;
    bool is_its_length = false;
    const DappleOptions rates = WithRates(work, {});
    for (const int spread : {1, 2, 4, 8}) {
      const int num_rounds = m / spread;
      alone = std::min(alone, (num_rounds - 1) * once * spread / 64. + once +
                                  2 * 63. / 64 * GradientBytes(work, 0, 100));
      bool divides = true;
      for (const PlannedStage& stage : plan->stages) {
        divides = divides && stage.devices.size() % spread == 0;
      }
      is_its_length =
          is_its_length ||
          (divides && DappleSeconds(work, plan->stages, spread, rates) ==
                          plan->objective_seconds);
    }
    EXPECT_LE(plan->objective_seconds, alone * (1 + 1e-12));
    EXPECT_TRUE(is_its_length) << plan->objective_seconds;
    EXPECT_GE(plan->objective_seconds * (1 + 1e-12), once);
    for (const PlannedStage& stage : plan->stages) {
      EXPECT_GE(plan->objective_seconds * (1 + 1e-12),
                m * PassSeconds(work, stage.first_layer, stage.end_layer) /
                    static_cast<double>(stage.devices.size()));
    }
  }
  EXPECT_GT(num_cut, 0);
}

}  // namespace weir::plan::dapple_test
