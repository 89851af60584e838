// SPDX-License-Identifier: Apache-2.0
#include "models/partition_exact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "models/partition.h"

namespace weir::models::partition_exact_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNever = std::numeric_limits<double>::infinity();

// A random instance: layers of different costs, devices of different speed and
// memory, slow links, all-reduces that grow with the replicas.
struct Instance {
  std::vector<double> seconds, memory, output;
  std::vector<double> speed, capacity, rate;
  CutProblem problem;

  explicit Instance(std::mt19937* random) {
    const auto any = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(*random);
    };
    problem.num_layers = any(1, 7);
    problem.num_devices = any(1, 5);
    problem.max_replicas = any(1, 3);
    problem.may_leave_devices = any(0, 1) == 1;
    for (int i = 0; i < problem.num_layers; ++i) {
      seconds.push_back(any(1, 6));
      memory.push_back(any(1, 4));
      output.push_back(any(0, 4));
    }
    for (int i = 0; i < problem.num_devices; ++i) {
      speed.push_back(any(1, 3));
      capacity.push_back(any(3, 20));
      rate.push_back(any(1, 3));
    }
    problem.stage_seconds = [this](const CutStage& stage) {
      return Seconds(stage);
    };
    problem.transfer_seconds = [this](const CutStage& stage) {
      return output[stage.first_layer - 1] / rate[stage.first_device] /
             stage.num_replicas();
    };
  }
  Instance(const Instance&) = delete;

  double Seconds(const CutStage& stage) const {
    double sum = 0, bytes = 0;
    for (int i = stage.first_layer; i < stage.end_layer; ++i) {
      sum += seconds[i];
      bytes += memory[i];
    }
    double slowest = kNever;
    for (int i = stage.first_device; i < stage.end_device; ++i) {
      slowest = std::min(slowest, speed[i]);
      if (bytes > capacity[i]) return kNever;
    }
    return sum / slowest / stage.num_replicas() +
           0.25 * (stage.num_replicas() - 1) * bytes;
  }
};

// Tries every continuation and keeps the smallest (largest, sum) in `best`.
void TryAll(const CutProblem& problem, int layer, int device, double largest,
            double sum, std::pair<double, double>* best) {
  if (layer == problem.num_layers) {
    if (device < problem.num_devices && !problem.may_leave_devices) return;
    *best = std::min(*best, {largest, sum});
    return;
  }
  for (int end = layer + 1; end <= problem.num_layers; ++end) {
    for (int replicas = 1; replicas <= problem.max_replicas &&
                           device + replicas <= problem.num_devices;
         ++replicas) {
      const CutStage stage{layer, end, device, device + replicas};
      const double seconds = problem.stage_seconds(stage);
      const double transfer = layer > 0 ? problem.transfer_seconds(stage) : 0;
      if (std::isinf(seconds)) continue;
      TryAll(problem, end, device + replicas,
             std::max({largest, seconds, transfer}), sum + seconds + transfer,
             best);
    }
  }
}

TEST(CutExactlyTest, EqualsBruteForceOnRandomInstances) {
  std::mt19937 random(7);
  int num_possible = 0;
  for (int i = 0; i < 600; ++i) {
    SCOPED_TRACE(i);
    const Instance instance(&random);
    std::pair<double, double> best = {kNever, kNever};
    TryAll(instance.problem, 0, 0, 0, 0, &best);
    const auto cut = CutExactly("cut", instance.problem);
    ASSERT_EQ(cut.ok(), !std::isinf(best.first)) << cut.status();
    if (!cut.ok()) continue;
    ++num_possible;
    EXPECT_NEAR(cut->largest_seconds, best.first, 1e-12);
    EXPECT_NEAR(cut->sum_seconds, best.second, 1e-9);
    double largest = 0, sum = 0;
    int layer = 0, device = 0;
    for (const CutStage& stage : cut->stages) {
      EXPECT_EQ(stage.first_layer, layer);
      EXPECT_EQ(stage.first_device, device);
      layer = stage.end_layer;
      device = stage.end_device;
      const double seconds = instance.problem.stage_seconds(stage);
      const double transfer =
          stage.first_layer > 0 ? instance.problem.transfer_seconds(stage) : 0;
      largest = std::max({largest, seconds, transfer});
      sum += seconds + transfer;
    }
    EXPECT_EQ(layer, instance.problem.num_layers);
    EXPECT_NEAR(largest, cut->largest_seconds, 1e-12);
    EXPECT_NEAR(sum, cut->sum_seconds, 1e-9);
  }
  EXPECT_GT(num_possible, 200);
}

TEST(CutExactlyTest, EqualsPartitionBalancedWhereDevicesAreAlike) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> any(0.1, 1);
  for (int i = 0; i < 100; ++i) {
    std::vector<double> seconds(20);
    for (double& one : seconds) one = any(random);
    CutProblem problem;
    problem.num_layers = 20;
    problem.num_devices = 1 + i % 8;
    problem.stage_seconds = [&](const CutStage& stage) {
      double sum = 0;
      for (int l = stage.first_layer; l < stage.end_layer; ++l)
        sum += seconds[l];
      return sum;
    };
    const auto cut = CutExactly("cut", problem);
    const auto balanced = PartitionBalanced(seconds, problem.num_devices);
    ASSERT_TRUE(cut.ok() && balanced.ok());
    double largest = 0;
    for (int s = 0; s < problem.num_devices; ++s) {
      largest = std::max(
          largest, problem.stage_seconds(
                       {balanced->first[s], balanced->first[s + 1], 0, 1}));
    }
    EXPECT_NEAR(cut->largest_seconds, largest, 1e-12);
  }
}

TEST(CutExactlyTest, SaysWhatIsWrong) {
  CutProblem problem;
  problem.num_layers = 2;
  problem.stage_seconds = [](const CutStage&) { return 1.0; };
  EXPECT_THAT(std::string(CutExactly("cut", problem).status().message()),
              HasSubstr("cut: num_devices is 0"));
  problem.num_devices = 3;
  EXPECT_EQ(CutExactly("cut", problem).status().message(),
            "cut: no allowed partition of 2 layers for 3 devices");
  problem.may_leave_devices = true;
  EXPECT_THAT(CutExactly("cut", problem)->stages,
              ElementsAre(CutStage{0, 2, 0, 1}));
}

}  // namespace weir::models::partition_exact_test
