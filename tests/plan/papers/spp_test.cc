// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/spp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/plan/papers/random_work.h"

namespace weir::plan::spp_test {

using testing::ElementsAre;

constexpr double kNever = std::numeric_limits<double>::infinity();

// Returns the smallest cut over all subsets without the first device.
double LeastCut(const std::vector<std::vector<double>>& bandwidth) {
  const int n = static_cast<int>(bandwidth.size());
  double best = kNever;
  for (int side = 1; side < 1 << (n - 1); ++side) {
    double sum = 0;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        if ((side >> i & 1) != (side >> j & 1)) sum += bandwidth[i][j];
      }
    }
    best = std::min(best, sum);
  }
  return best;
}

TEST(MinimumCutTest, IsTheLeastOfAll) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const int n = Whole(2, 8, &random);
    std::vector<std::vector<double>> bandwidth(n, std::vector<double>(n));
    for (auto& row : bandwidth) {
      for (double& rate : row) rate = Uniform(0.1, 10, &random);
    }
    std::vector<int> devices(n);
    std::iota(devices.begin(), devices.end(), 0);
    const std::vector<int> side = MinimumCut(bandwidth, devices);
    ASSERT_GE(side.size(), 1u);
    ASSERT_LT(side.size(), static_cast<size_t>(n));
    double sum = 0;
    for (int a : devices) {
      for (int b : devices) {
        if (std::count(side.begin(), side.end(), a) !=
            std::count(side.begin(), side.end(), b)) {
          sum += bandwidth[a][b];
        }
      }
    }
    EXPECT_NEAR(sum, LeastCut(bandwidth), 1e-9 * sum);
  }
}

TEST(SppDeviceOrderTest, KeepsServersTogetherHoweverTheyAreNumbered) {
  Random random(2);
  PlannerWork work = RandomWork(4, 2, 3, &random);
  // Even numbers are on one server, odd ones on the other.
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) {
      work.bytes_per_second[i][j] = i % 2 == j % 2 ? 100 : 1;
    }
  }
  const std::vector<int> order = SppDeviceOrder(work);
  for (int i : {1, 2, 4, 5}) EXPECT_EQ(order[i] % 2, order[i - 1] % 2);
}

// Returns true if nested minimum cuts can give this order of devices.
bool IsCutByCut(const PlannerWork& work, const std::vector<int>& order) {
  if (order.size() < 2) return true;
  const auto weight = [&](const std::vector<int>& side) {
    double sum = 0;
    for (int a : side) {
      for (int b : order) {
        if (std::count(side.begin(), side.end(), b) > 0) continue;
        sum += work.bytes_per_second[a][b] + work.bytes_per_second[b][a];
      }
    }
    return sum;
  };
  std::vector<int> devices = order;
  std::sort(devices.begin(), devices.end());
  const double least = weight(MinimumCut(work.bytes_per_second, devices));
  for (size_t middle = 1; middle < order.size(); ++middle) {
    const auto at = order.begin() + static_cast<int>(middle);
    const std::vector<int> front(order.begin(), at), back(at, order.end());
    if (weight(front) > least * (1 + 1e-9)) continue;
    if (IsCutByCut(work, front) && IsCutByCut(work, back)) return true;
  }
  return false;
}

// Most instances need no general cut, as devices are split off one by one.
TEST(SppDeviceOrderTest, IsCutByMinimumCuts) {
  Random random(9);
  for (int i = 0; i < 300; ++i) {
    PlannerWork work =
        RandomWork(2, Whole(1, 6, &random), Whole(1, 4, &random), &random);
    const double inside = Uniform(1, 30, &random);
    const bool is_unlike = i % 3 == 0;
    for (size_t a = 0; a < work.devices.size(); ++a) {
      for (size_t b = 0; b < work.devices.size(); ++b) {
        double& rate = work.bytes_per_second[a][b];
        rate = work.devices[a].server == work.devices[b].server ? inside : 1;
        if (is_unlike) rate *= Uniform(1, 1.5, &random);
      }
    }
    const std::vector<int> order = SppDeviceOrder(work);
    std::vector<int> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (size_t k = 0; k < sorted.size(); ++k) {
      ASSERT_EQ(sorted[k], static_cast<int>(k));
    }
    EXPECT_TRUE(IsCutByCut(work, order)) << i;
  }
}

// A thousand devices, for which one general cut would take seconds.
TEST(SppDeviceOrderTest, KeepsServersTogetherInALargeCluster) {
  Random random(10);
  const std::vector<int> order = SppDeviceOrder(RandomWork(2, 128, 8, &random));
  ASSERT_EQ(order.size(), 1024u);
  int num_changes = 0;
  for (size_t k = 1; k < order.size(); ++k) {
    num_changes += order[k] / 8 != order[k - 1] / 8;
  }
  EXPECT_EQ(num_changes, 127);
}

// Returns true if every device has memory for the states of its stage and its
// part of one microbatch.
bool HoldsOneMicrobatch(const PlannerWork& work,
                        const std::vector<PlannedStage>& stages) {
  for (const PlannedStage& stage : stages) {
    double bytes = 0;
    for (int l = stage.first_layer; l < stage.end_layer; ++l) {
      bytes += work.layers[l].state_bytes +
               work.layers[l].activation_bytes /
                   static_cast<double>(stage.devices.size());
    }
    for (int device : stage.devices) {
      if (bytes > work.devices[device].memory_bytes) return false;
    }
  }
  return true;
}

// Returns the smallest value of the largest workload over all cuts that fit in
// memory; kNever if none fits.
double BruteForce(const PlannerWork& work, const std::vector<int>& order,
                  int num_stages) {
  double best = kNever;
  ForEachCut(
      static_cast<int>(work.layers.size()), num_stages,
      [&](const std::vector<int>& first) {
        ForEachSizes(
            static_cast<int>(order.size()), num_stages,
            [&](const std::vector<int>& sizes) {
              std::vector<PlannedStage> stages;
              auto at = order.begin();
              for (int s = 0; s < num_stages; ++s) {
                stages.push_back(Stage(first[s], first[s + 1],
                                       std::vector<int>(at, at + sizes[s])));
                at += sizes[s];
              }
              if (!HoldsOneMicrobatch(work, stages)) return;
              best = std::min(best, SppWorkloadOf(work, stages).largest());
            });
      });
  return best;
}

// In every other round, the devices have so little memory that it can change
// the result.
TEST(SppStagesTest, AreBruteForceForTheirOrder) {
  Random random(3);
  int num_empty = 0, num_longer = 0;
  for (int i = 0; i < 300; ++i) {
    PlannerWork work = RandomWork(Whole(1, 6, &random), Whole(1, 2, &random),
                                  Whole(1, 3, &random), &random);
    MakeUnlike(&random, &work);
    const PlannerWork large = work;
    if (i % 2 == 1) {
      for (PlannerDevice& device : work.devices) {
        device.memory_bytes = Uniform(10, 60, &random);
      }
    }
    const std::vector<int> order = SppDeviceOrder(work);
    const int most =
        static_cast<int>(std::min(work.layers.size(), work.devices.size()));
    for (int p = 1; p <= most; ++p) {
      const std::vector<PlannedStage> stages = SppStages(work, order, p);
      const double best = BruteForce(work, order, p);
      if (best == kNever) {
        EXPECT_TRUE(stages.empty());
        ++num_empty;
        continue;
      }
      ASSERT_EQ(stages.size(), static_cast<size_t>(p));
      EXPECT_TRUE(HoldsOneMicrobatch(work, stages));
      EXPECT_NEAR(SppWorkloadOf(work, stages).largest(), best, 1e-9 * best);
      num_longer += best > BruteForce(large, order, p) * (1 + 1e-9);
    }
  }
  EXPECT_GT(num_empty, 20);
  EXPECT_GT(num_longer, 20);
}

// Stages with equal numbers of devices have a separate dynamic program.
TEST(PlanSppTest, EqualReplicasHaveTheLeastWorkloadOfAllCuts) {
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    PlannerWork work = RandomWork(Whole(1, 7, &random), Whole(1, 2, &random),
                                  Whole(1, 3, &random), &random);
    MakeUnlike(&random, &work);
    work.num_microbatches = 12;
    SppOptions options;
    options.equal_replicas = true;
    options.order = SppDeviceOrder(work);
    const auto plan = PlanSpp(work, options);
    const int p = plan.ok() ? static_cast<int>(plan->stages.size()) : 0;
    ASSERT_GT(p, 0) << plan.status();
    const int size = static_cast<int>(work.devices.size()) / p;
    double best = kNever;
    ForEachCut(static_cast<int>(work.layers.size()), p,
               [&](const std::vector<int>& first) {
                 std::vector<PlannedStage> stages;
                 for (int s = 0; s < p; ++s) {
                   const int start = s * size;
                   const auto at = options.order.begin() + start;
                   stages.push_back(Stage(first[s], first[s + 1],
                                          std::vector<int>(at, at + size)));
                 }
                 best = std::min(best, SppWorkloadOf(work, stages).largest());
               });
    EXPECT_NEAR(SppWorkloadOf(work, plan->stages).largest(), best, 1e-9 * best);
  }
}

TEST(ExecuteSppTest, IsWithinItsBoundAndAboveThoseOfAPipeline) {
  Random random(4);
  double nearest = 0;
  for (int i = 0; i < 500; ++i) {
    PlannerWork work = RandomWork(Whole(2, 8, &random), Whole(1, 2, &random),
                                  Whole(1, 4, &random), &random);
    MakeUnlike(&random, &work);
    work.num_microbatches = Whole(1, 20, &random);
    const double m = work.num_microbatches;
    const std::vector<int> order = SppDeviceOrder(work);
    const int most =
        static_cast<int>(std::min(work.layers.size(), work.devices.size()));
    const int p = Whole(1, most, &random);
    const std::vector<PlannedStage> stages = SppStages(work, order, p);
    const SppWorkload load = SppWorkloadOf(work, stages);
    const SppExecution execution = ExecuteSpp(work, stages);
    const double bound = (1 + (4 * p - 4) / m) * load.largest_of_pipeline() +
                         load.longest_all_reduce();
    EXPECT_LE(execution.seconds, bound * (1 + 1e-12));
    if (p > 1) nearest = std::max(nearest, execution.seconds / bound);
    double once = 0;
    for (double seconds : load.stage_seconds) once += seconds / m;
    for (double seconds : load.transfer_seconds) once += seconds / m;
    EXPECT_GE(execution.seconds * (1 + 1e-12), once);
    EXPECT_GE(execution.seconds * (1 + 1e-12), load.largest_of_pipeline());
    for (size_t s = 0; s < stages.size(); ++s) {
      EXPECT_GE(execution.seconds * (1 + 1e-12),
                load.stage_seconds[s] + load.all_reduce_seconds[s]);
      EXPECT_LE(execution.most_kept[s], m);
      EXPECT_GE(execution.most_kept[s], 1);
    }
  }
  std::printf("spp: at most %.1f %% of its bound\n", 100 * nearest);
}

// For a long batch, the time is close to the upper bound and to the work of the
// busiest stage.
TEST(ExecuteSppTest, OfALongBatchIsWithinItsBound) {
  Random random(6);
  for (int i = 0; i < 50; ++i) {
    PlannerWork work = RandomWork(Whole(2, 8, &random), Whole(1, 2, &random),
                                  Whole(1, 4, &random), &random);
    MakeUnlike(&random, &work);
    work.num_microbatches = Whole(kMostExecuted + 1, 100'000, &random);
    const int p =
        static_cast<int>(std::min(work.layers.size(), work.devices.size()));
    const std::vector<PlannedStage> stages =
        SppStages(work, SppDeviceOrder(work), p);
    const SppWorkload load = SppWorkloadOf(work, stages);
    const SppExecution execution = ExecuteSpp(work, stages);
    const double bound = (1 + (4.0 * p - 4) / work.num_microbatches) *
                             load.largest_of_pipeline() +
                         load.longest_all_reduce();
    EXPECT_LE(execution.seconds, bound * (1 + 1e-9));
    EXPECT_GE(execution.seconds, load.largest_of_pipeline() * (1 - 1e-9));
    for (const int kept : execution.most_kept) {
      EXPECT_GE(kept, 1);
      EXPECT_LE(kept, work.num_microbatches);
    }
  }
}

TEST(ExecuteSppTest, OfEqualStagesIsOneForwardOneBackward) {
  Random random(5);
  for (int p = 1; p <= 5; ++p) {
    PlannerWork work = RandomWork(p, 1, p, &random);
    std::vector<PlannedStage> stages;
    for (int s = 0; s < p; ++s) {
      work.layers[s].forward_seconds = 1;
      work.layers[s].backward_seconds = 2;
      work.layers[s].output_bytes = 0;
      stages.push_back(Stage(s, s + 1, {s}));
    }
    for (int m : {1, 3, 8, 20, kMostExecuted + 1, 1'000'000}) {
      work.num_microbatches = m;
      EXPECT_NEAR(ExecuteSpp(work, stages).seconds, (m + p - 1) * 3, 1e-9 * m);
    }
  }
}

// Compares with the execution of every cut and replication for its order. PRM
// minimizes a workload, not the execution time. Prints the gap.
TEST(PlanSppTest, IsNearTheBestExecution) {
  Random random(6);
  Gap gap;
  for (int i = 0; i < 200; ++i) {
    PlannerWork work = RandomWork(Whole(2, 6, &random), 2, 2, &random);
    const std::vector<int> order = SppDeviceOrder(work);
    double best = kNever;
    for (int p = 1; p <= std::min<int>(4, work.layers.size()); ++p) {
      ForEachCut(
          static_cast<int>(work.layers.size()), p,
          [&](const std::vector<int>& first) {
            ForEachSizes(4, p, [&](const std::vector<int>& sizes) {
              std::vector<PlannedStage> stages;
              auto at = order.begin();
              for (int s = 0; s < p; ++s) {
                stages.push_back(Stage(first[s], first[s + 1],
                                       std::vector<int>(at, at + sizes[s])));
                at += sizes[s];
              }
              best = std::min(best, ExecuteSpp(work, stages).seconds);
            });
          });
    }
    const auto plan = PlanSpp(work);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_GE(plan->objective_seconds * (1 + 1e-12), best);
    gap.Add(plan->objective_seconds, best);
  }
  std::printf("spp: %d of %d optimal, mean gap %.2f %%, worst %.2f %%\n",
              gap.num_optimal, gap.num_instances, 100 * gap.mean(),
              100 * gap.worst);
}

TEST(PlanSppTest, RespectsMemoryAndEqualReplicasWhereAsked) {
  Random random(7);
  int num_plans = 0;
  for (int i = 0; i < 200; ++i) {
    PlannerWork work = RandomWork(Whole(4, 8, &random), 2, 2, &random);
    for (PlannerDevice& device : work.devices) {
      device.memory_bytes = Whole(20, 80, &random);
    }
    const auto plan = PlanSpp(work, {true, {}});
    if (!plan.ok()) {
      EXPECT_EQ(plan.status().code(), absl::StatusCode::kNotFound);
      continue;
    }
    ++num_plans;
    const SppExecution execution = ExecuteSpp(work, plan->stages);
    for (size_t s = 0; s < plan->stages.size(); ++s) {
      const PlannedStage& stage = plan->stages[s];
      EXPECT_EQ(stage.devices.size(), plan->stages[0].devices.size());
      double bytes = 0;
      for (int l = stage.first_layer; l < stage.end_layer; ++l) {
        bytes += work.layers[l].state_bytes +
                 work.layers[l].activation_bytes * execution.most_kept[s] /
                     static_cast<double>(stage.devices.size());
      }
      for (int device : stage.devices) {
        EXPECT_LE(bytes, work.devices[device].memory_bytes * (1 + 1e-12));
      }
    }
  }
  EXPECT_GT(num_plans, 20);
  EXPECT_LT(num_plans, 200);
}

// The workloads are computed from the formulas of the paper. PE takes at most
// (1 + (4S-4)/m) C + the longest all-reduce, and at least the time of any stage
// with its all-reduce. Data parallelism over all devices is one of the plans.
TEST(PlanSppTest, APlanOfAHundredLayersOnSixtyFourDevicesKeepsThePapersBounds) {
  Random random(8);
  for (const double gradients : {0.0, 0.1, 1.0, 10.0}) {
    PlannerWork work = RandomWork(100, 8, 8, &random);
    for (PlannerLayer& layer : work.layers) layer.gradient_bytes *= gradients;
    const auto plan = PlanSpp(work);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(ExpectValidStages(work, plan->stages), 64);
    const int m = work.num_microbatches;
    double largest = 0, longest_all_reduce = 0, bound = 0;
    const auto slowest_link = [&](const std::vector<int>& from,
                                  const std::vector<int>& to) {
      double slowest = kNever;
      for (int a : from) {
        for (int b : to) {
          if (a != b) slowest = std::min(slowest, work.bytes_per_second[a][b]);
        }
      }
      return slowest;
    };
    const auto& stages = plan->stages;
    for (size_t s = 0; s < stages.size(); ++s) {
      const int first = stages[s].first_layer, end = stages[s].end_layer;
      const auto r = static_cast<double>(stages[s].devices.size());
      const double seconds = m * PassSeconds(work, first, end) / r;
      const double all_reduce =
          2 * (r - 1) / r * GradientBytes(work, first, end) /
          slowest_link(stages[s].devices, stages[s].devices);
      largest = std::max(largest, seconds);
      longest_all_reduce = std::max(longest_all_reduce, all_reduce);
      bound = std::max(bound, seconds + all_reduce);
      if (s + 1 == stages.size()) continue;
      const std::vector<int>& next = stages[s + 1].devices;
      largest = std::max(largest, m * 2 * work.layers[end - 1].output_bytes /
                                      (r * static_cast<double>(next.size()) *
                                       slowest_link(stages[s].devices, next)));
    }
    EXPECT_GE(plan->objective_seconds * (1 + 1e-12), bound);
    EXPECT_LE(
        plan->objective_seconds,
        (1 + (4. * static_cast<double>(stages.size()) - 4) / m) * largest +
            longest_all_reduce);
    EXPECT_LE(plan->objective_seconds,
              (m * PassSeconds(work, 0, 100) / 64 +
               2 * 63. / 64 * GradientBytes(work, 0, 100)) *
                  (1 + 1e-12));
    if (gradients == 0) {
      // No plan is faster than perfectly divided work.
      EXPECT_NEAR(plan->objective_seconds, m * PassSeconds(work, 0, 100) / 64,
                  1e-9);
    }
  }
}

}  // namespace weir::plan::spp_test
