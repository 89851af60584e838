// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/bapipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "plan/papers/registry.h"
#include "plan/papers/run_planner.h"
#include "schedules/registry.h"
#include "schedules/walk.h"
#include "tests/plan/papers/random_work.h"
#include "tests/plan/search/small_requests.h"

namespace weir::plan::bapipe_test {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr BaPipeOrder kOrders[] = {
    BaPipeOrder::kAsynchronous, BaPipeOrder::kParallel, BaPipeOrder::kNoOverlap,
    BaPipeOrder::kOverlap};

double Replay(BaPipeOrder order, int m, int n, double f, double b, double sr) {
  schedules::ScheduleSpec spec;
  spec.num_ranks = n;
  spec.num_microbatches = m;
  schedules::PassCosts costs;
  schedules::StagePassCosts stage;
  stage.forward = f;
  stage.backward = b;
  costs.stages = {stage};
  costs.hop = sr;
  return schedules::TimedWalk(*schedules::GenerateSchedule(Name(order), spec),
                              costs)
      .makespan();
}

TEST(BaPipeSecondsTest, AreWhatTheirOrdersTake) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const int n = Whole(1, 8, &random), m = Whole(n, 30, &random);
    const double f = Uniform(0.5, 1, &random), b = Uniform(1, 2, &random);
    const double sr = Uniform(0, (f + b) / 2, &random);
    for (BaPipeOrder order : kOrders) {
      const bool hides = order == BaPipeOrder::kAsynchronous ||
                         order == BaPipeOrder::kParallel;
      const double seconds = BaPipeSeconds(order, m, n, f + b, sr);
      EXPECT_NEAR(Replay(order, m, n, f, b, hides ? 0 : sr), seconds,
                  1e-9 * seconds)
          << Name(order) << " m " << m << " n " << n;
      EXPECT_GE(seconds * (1 + 1e-12), m * (f + b));
      EXPECT_GE(seconds * (1 + 1e-12), n * (f + b));
    }
  }
}

TEST(BaPipeKeptTest, OverlapKeepsTwice) {
  EXPECT_EQ(BaPipeKept(BaPipeOrder::kNoOverlap, 16, 4, 1), 3);
  EXPECT_EQ(BaPipeKept(BaPipeOrder::kOverlap, 16, 4, 1), 6);
  EXPECT_EQ(BaPipeKept(BaPipeOrder::kOverlap, 4, 4, 1), 4);
  EXPECT_EQ(BaPipeKept(BaPipeOrder::kParallel, 16, 4, 1), 6);
  EXPECT_EQ(BaPipeKept(BaPipeOrder::kAsynchronous, 16, 4, 1), 3);
}

bool Fits(const PlannerWork& work, BaPipeOrder order,
          const std::vector<PlannedStage>& stages) {
  const int p = static_cast<int>(stages.size());
  const int replicas = static_cast<int>(stages[0].devices.size());
  for (int s = 0; s < p; ++s) {
    double bytes = 0;
    for (int l = stages[s].first_layer; l < stages[s].end_layer; ++l) {
      bytes += work.layers[l].state_bytes +
               work.layers[l].activation_bytes *
                   BaPipeKept(order, work.num_microbatches / replicas, p, s);
    }
    if (bytes > work.devices[0].memory_bytes) return false;
  }
  return true;
}

BaPipeOrder OrderOf(const PlannedPipeline& plan) {
  return *std::find_if(
      std::begin(kOrders), std::end(kOrders),
      [&](BaPipeOrder order) { return plan.schedule == Name(order); });
}

// Returns true if the longest forward hides the transfers of 1F1B-AS.
bool Hides(const PlannerWork& work, const std::vector<PlannedStage>& stages) {
  double forward = 0, transfer = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    double own = 0;
    for (int l = stages[s].first_layer; l < stages[s].end_layer; ++l) {
      own += work.layers[l].forward_seconds;
    }
    forward = std::max(forward, own);
    for (size_t i = 0; s > 0 && i < stages[s].devices.size(); ++i) {
      transfer = std::max(transfer,
                          work.layers[stages[s].first_layer - 1].output_bytes /
                              work.bytes_per_second[stages[s - 1].devices[i]]
                                                   [stages[s].devices[i]]);
    }
  }
  return transfer <= forward;
}

double BruteForce(const PlannerWork& work,
                  const std::vector<BaPipeOrder>& orders = {
                      BaPipeOrder::kNoOverlap, BaPipeOrder::kOverlap}) {
  const int n = static_cast<int>(work.devices.size());
  double best = kNever;
  for (int p = 1; p <= n; ++p) {
    if (n % p != 0 || work.num_microbatches % (n / p) != 0) continue;
    ForEachCut(
        static_cast<int>(work.layers.size()), p,
        [&](const std::vector<int>& first) {
          std::vector<PlannedStage> stages;
          for (int s = 0; s < p; ++s) {
            stages.push_back(Stage(first[s], first[s + 1], {}));
            for (int i = 0; i < n / p; ++i) {
              stages.back().devices.push_back(s * (n / p) + i);
            }
          }
          for (BaPipeOrder order : orders) {
            if (!Fits(work, order, stages)) continue;
            if (order == BaPipeOrder::kAsynchronous && !Hides(work, stages)) {
              continue;
            }
            best = std::min(best, BaPipeSeconds(order, work, stages));
          }
        });
  }
  return best;
}

// The planner moves single layers and stops where only moving two at once would
// help. Prints the gap to the optimum.
TEST(PlanBaPipeTest, IsNearBruteForceAndFindsAPlanWhereThereIsOne) {
  Random random(2);
  Gap gap;
  int num_none = 0;
  for (int i = 0; i < 400; ++i) {
    PlannerWork work = RandomWork(Whole(4, 10, &random), 2, 2, &random);
    for (PlannerDevice& device : work.devices) {
      device.memory_bytes = Uniform(40, 150, &random);
    }
    const double memory = work.devices[0].memory_bytes;
    for (PlannerDevice& device : work.devices) device.memory_bytes = memory;
    const double best = BruteForce(work);
    const auto plan = PlanBaPipe(work);
    if (best == kNever) {
      ++num_none;
      EXPECT_EQ(plan.status().code(), absl::StatusCode::kNotFound);
      continue;
    }
    ASSERT_TRUE(plan.ok()) << plan.status();
    const BaPipeOrder order = OrderOf(*plan);
    EXPECT_TRUE(Fits(work, order, plan->stages));
    EXPECT_DOUBLE_EQ(BaPipeSeconds(order, work, plan->stages),
                     plan->objective_seconds);
    EXPECT_GE(plan->objective_seconds * (1 + 1e-12), best);
    gap.Add(plan->objective_seconds, best);
  }
  EXPECT_GT(num_none, 5);
  RecordProperty("optimal", gap.num_optimal);
  std::printf("bapipe: %d of %d optimal, mean gap %.2f %%, worst %.2f %%\n",
              gap.num_optimal, gap.num_instances, 100 * gap.mean(),
              100 * gap.worst);
  EXPECT_GE(gap.num_optimal, gap.num_instances * 3 / 4);
}

// Asynchronous hardware that can overlap forward and backward.
TEST(PlanBaPipeTest, ChoosesAmongAsynchronousOrdersNearBruteForce) {
  Random random(5);
  Gap gap;
  int num_parallel = 0, num_neither = 0;
  for (int i = 0; i < 300; ++i) {
    PlannerWork work = RandomWork(Whole(4, 8, &random), 2, 2, &random);
    const double memory = Uniform(60, 300, &random);
    for (PlannerDevice& device : work.devices) device.memory_bytes = memory;
    const double wide = Uniform(0.1, 4, &random);
    for (PlannerLayer& layer : work.layers) {
      layer.output_bytes *= wide;
      layer.gradient_bytes *= 10;
    }
    const double best =
        BruteForce(work, {BaPipeOrder::kAsynchronous, BaPipeOrder::kParallel});
    const auto plan = PlanBaPipe(work, {true, true});
    if (!plan.ok()) {
      EXPECT_EQ(best, kNever);
      continue;
    }
    const BaPipeOrder order = OrderOf(*plan);
    EXPECT_TRUE(Fits(work, order, plan->stages));
    num_parallel += order == BaPipeOrder::kParallel;
    if (!plan->notes.empty()) {
      ++num_neither;
      EXPECT_EQ(order, BaPipeOrder::kAsynchronous);
      continue;
    }
    EXPECT_TRUE(order == BaPipeOrder::kParallel || Hides(work, plan->stages));
    EXPECT_GE(plan->objective_seconds * (1 + 1e-12), best);
    gap.Add(plan->objective_seconds, best);
  }
  std::printf(
      "bapipe, asynchronous: %d of %d optimal, mean gap %.2f %%, worst %.2f "
      "%%; "
      "%d FBP-AS, %d hide nothing\n",
      gap.num_optimal, gap.num_instances, 100 * gap.mean(), 100 * gap.worst,
      num_parallel, num_neither);
  EXPECT_GE(gap.num_instances, 200);
  EXPECT_GT(num_parallel, 5);
}

TEST(PlanBaPipeTest, RunsPassesAtOnceWhereOnlyThatHidesTransfers) {
  Random random(6);
  PlannerWork work = RandomWork(4, 1, 4, &random);
  for (PlannerLayer& layer : work.layers) {
    layer.forward_seconds = 1;
    layer.backward_seconds = 2;
    layer.gradient_bytes = 1e6;  // no replicas
  }
  const auto plan = [&](double seconds) {
    for (PlannerLayer& layer : work.layers) layer.output_bytes = 10 * seconds;
    return *PlanBaPipe(work, {true, true});
  };
  EXPECT_EQ(plan(0.9).schedule, "bapipe-as");
  EXPECT_EQ(plan(1.4).schedule, "bapipe-fbp-as");
}

// A forward of one layer takes 1 s at speed 1. Whether it hides a transfer
// depends on the device it runs on, here one layer on each.
TEST(PlanBaPipeTest, TransfersRunDuringForwardsAtTheSpeedOfTheirDevices) {
  Random random(7);
  PlannerWork work = RandomWork(4, 1, 4, &random);
  const auto plan = [&](const std::vector<double>& speeds, double seconds) {
    for (PlannerLayer& layer : work.layers) {
      layer.forward_seconds = 1;
      layer.backward_seconds = 2;
      layer.gradient_bytes = 1e6;  // no replicas
      layer.output_bytes = 10 * seconds;
    }
    for (size_t i = 0; i < speeds.size(); ++i) {
      work.devices[i].speed = speeds[i];
    }
    const auto planned = PlanBaPipe(work, {true, true});
    EXPECT_TRUE(planned.ok()) << planned.status();
    EXPECT_EQ(planned->stages.size(), 4);
    return planned->schedule;
  };
  EXPECT_EQ(plan({1, 1, 1, 1}, 1.4), "bapipe-fbp-as");
  // The slow device's forward takes 2 s.
  EXPECT_EQ(plan({1, 1, 0.5, 1}, 1.4), "bapipe-as");
  EXPECT_EQ(plan({1, 1, 0.8, 1}, 1.4), "bapipe-fbp-as");
  // The longest forward takes 0.5 s.
  EXPECT_EQ(plan({1, 1, 1, 1}, 0.7), "bapipe-as");
  EXPECT_EQ(plan({2, 2, 4, 2}, 0.7), "bapipe-fbp-as");
}

TEST(PlanBaPipeTest, WithoutTransfersItIsTheBalancedPartition) {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    PlannerWork work = RandomWork(Whole(3, 9, &random), 1, 3, &random);
    for (PlannerLayer& layer : work.layers) {
      layer.output_bytes = 0;
      layer.gradient_bytes = 1e6;  // no replicas
    }
    const auto plan = PlanBaPipe(work);
    ASSERT_TRUE(plan.ok());
    EXPECT_NEAR(plan->objective_seconds, BruteForce(work),
                1e-9 * plan->objective_seconds);
  }
}

// Returns 8 equal layers whose transfers are hidden by their passes.
PlannerWork EqualLayers() {
  Random random(4);
  PlannerWork work = RandomWork(8, 1, 4, &random);
  for (PlannerLayer& layer : work.layers) {
    layer.forward_seconds = layer.backward_seconds = 1;
    layer.output_bytes = 10;  // 1 s
    layer.state_bytes = 0;
    layer.activation_bytes = 1;
    layer.gradient_bytes = 1e6;
  }
  work.num_microbatches = 32;
  return work;
}

TEST(PlanBaPipeTest, TakesOverlapWhereTransfersHideAndMemoryAllows) {
  PlannerWork work = EqualLayers();
  EXPECT_EQ(PlanBaPipe(work)->schedule, "bapipe-so");
  for (PlannerDevice& device : work.devices) device.memory_bytes = 15;
  EXPECT_EQ(PlanBaPipe(work)->schedule, "bapipe-sno");
  for (PlannerDevice& device : work.devices) device.memory_bytes = 3;
  EXPECT_EQ(PlanBaPipe(work).status().code(), absl::StatusCode::kNotFound);
  for (PlannerDevice& device : work.devices) device.memory_bytes = 15;
  EXPECT_EQ(PlanBaPipe(work, {true})->schedule, "bapipe-as");
}

// SO sends while it computes, which blocking transfers do not allow.
TEST(PlanBaPipeTest, TakesNoOverlapWhereTransfersBlock) {
  const PlannerWork work = EqualLayers();
  ASSERT_EQ(PlanBaPipe(work)->schedule, "bapipe-so");
  BaPipeOptions options;
  options.blocking_transfers = true;
  const auto plan = PlanBaPipe(work, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->schedule, "bapipe-sno");
  EXPECT_THAT(plan->notes, testing::Contains(testing::HasSubstr("block")));
}

TEST(PlanBaPipeTest, IsAskedForWhatTheScenariosTransfersDo) {
  Scenario scenario = SmallRequest(6, 4, 64).scenario();
  scenario.mutable_batch()->set_microbatch_size(1);
  const auto planner = FindPaperPlanner("bapipe");
  ASSERT_TRUE(planner.ok());
  for (const TransferMode mode : {OVERLAPPED, BLOCKING}) {
    scenario.mutable_communication()->set_transfers(mode);
    const auto given = GivenForPlanners("test", scenario, 4);
    ASSERT_TRUE(given.ok()) << given.status();
    const auto answers = RunPlanners({*planner}, *given);
    ASSERT_TRUE(answers.ok()) << answers.status();
    const PlannerResult& answer = answers->at(0);
    ASSERT_TRUE(answer.planned.ok()) << answer.planned;
    EXPECT_EQ(answer.plan.notes.empty(), mode == OVERLAPPED);
    if (mode == BLOCKING) {
      EXPECT_EQ(answer.plan.schedule, "bapipe-sno");
    }
  }
}

}  // namespace weir::plan::bapipe_test
