// SPDX-License-Identifier: Apache-2.0
// Small random work for planners, and all cuts of it.
#ifndef WEIR_TESTS_PLAN_PAPERS_RANDOM_WORK_H_
#define WEIR_TESTS_PLAN_PAPERS_RANDOM_WORK_H_

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>
#include <vector>

#include "plan/papers/planner_work.h"

namespace weir::plan {

using Random = std::mt19937;

inline double Uniform(double low, double high, Random* random) {
  return std::uniform_real_distribution<double>(low, high)(*random);
}
inline int Whole(int low, int high, Random* random) {
  return std::uniform_int_distribution<int>(low, high)(*random);
}

// Returns layers of 0.5 to 3 s with 1 to 10 bytes of activations, 1 to 10 bytes
// of state and 0 to 2 bytes of output, on links of 1 byte/s between servers and
// 10 bytes/s inside.
inline PlannerWork RandomWork(int num_layers, int num_servers,
                              int devices_per_server, Random* random) {
  PlannerWork work;
  work.num_microbatches = 8;
  for (int i = 0; i < num_layers; ++i) {
    PlannerLayer& layer = work.layers.emplace_back();
    layer.forward_seconds = Uniform(0.5, 1, random);
    layer.backward_seconds = Uniform(0, 2, random);
    layer.output_bytes = Uniform(0, 2, random);
    layer.input_bytes = Uniform(0, 1, random);
    layer.activation_bytes = Uniform(1, 10, random);
    layer.parameter_bytes = layer.version_bytes = layer.gradient_bytes =
        Uniform(0.5, 5, random);
    layer.state_bytes = 2 * layer.parameter_bytes;
  }
  const int n = num_servers * devices_per_server;
  for (int i = 0; i < n; ++i) {
    work.devices.push_back({i / devices_per_server, 1, 1e9});
    std::vector<double>& row = work.bytes_per_second.emplace_back();
    for (int j = 0; j < n; ++j) {
      row.push_back(i / devices_per_server == j / devices_per_server ? 10 : 1);
    }
  }
  work.servers_bytes_per_second = 1;
  work.server_bytes_per_second = 10;
  return work;
}

// Makes the speeds of devices and links different.
inline void MakeUnlike(Random* random, PlannerWork* work) {
  for (PlannerDevice& device : work->devices) {
    device.speed = Whole(0, 1, random) == 0 ? 1 : 0.4;
    if (Whole(0, 3, random) == 0) device.speed = Uniform(0.3, 2, random);
  }
  for (size_t i = 0; i < work->devices.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (Whole(0, 1, random) == 0) continue;
      work->bytes_per_second[i][j] = work->bytes_per_second[j][i] =
          Uniform(0.5, 10, random);
    }
  }
}

// Calls `visit` with every cut into `num_stages` stages, given as first layers
// and the number of layers: [0] = 0, back() = n.
inline void ForEachCut(
    int num_layers, int num_stages,
    const std::function<void(const std::vector<int>&)>& visit,
    std::vector<int> first = {0}) {
  if (static_cast<int>(first.size()) == num_stages) {
    first.push_back(num_layers);
    visit(first);
    return;
  }
  for (int next = first.back() + 1; next < num_layers; ++next) {
    first.push_back(next);
    ForEachCut(num_layers, num_stages, visit, first);
    first.pop_back();
  }
}

// Calls `visit` with every way to write `total` as a sum of `num_stages`
// numbers of at least 1.
inline void ForEachSizes(
    int total, int num_stages,
    const std::function<void(const std::vector<int>&)>& visit) {
  ForEachCut(total, num_stages, [&](const std::vector<int>& first) {
    std::vector<int> sizes;
    for (size_t i = 1; i < first.size(); ++i) {
      sizes.push_back(first[i] - first[i - 1]);
    }
    visit(sizes);
  });
}

inline PlannedStage Stage(int first, int end, std::vector<int> devices) {
  PlannedStage stage;
  stage.first_layer = first;
  stage.end_layer = end;
  stage.devices = std::move(devices);
  return stage;
}

// Checks that the stages cut all layers in order and that no device is in two
// of them. Returns the devices that are used.
inline int ExpectValidStages(const PlannerWork& work,
                             const std::vector<PlannedStage>& stages) {
  std::set<int> devices;
  int num_used = 0, layer = 0;
  for (const PlannedStage& stage : stages) {
    EXPECT_EQ(stage.first_layer, layer);
    EXPECT_LT(stage.first_layer, stage.end_layer);
    layer = stage.end_layer;
    for (const int device : stage.devices) {
      EXPECT_GE(device, 0);
      EXPECT_LT(device, std::ssize(work.devices));
      devices.insert(device);
      ++num_used;
    }
  }
  EXPECT_EQ(layer, std::ssize(work.layers));
  EXPECT_EQ(std::ssize(devices), num_used);
  return num_used;
}

// Returns the forward and backward seconds of layers [first, end).
inline double PassSeconds(const PlannerWork& work, int first, int end) {
  double seconds = 0;
  for (int i = first; i < end; ++i) {
    seconds += work.layers[i].forward_seconds + work.layers[i].backward_seconds;
  }
  return seconds;
}

inline double GradientBytes(const PlannerWork& work, int first, int end) {
  double bytes = 0;
  for (int i = first; i < end; ++i) bytes += work.layers[i].gradient_bytes;
  return bytes;
}

// The gap between a heuristic and the optimum over many instances.
struct Gap {
  int num_instances = 0, num_optimal = 0;
  double worst = 0, sum = 0;

  void Add(double found, double best) {
    const double gap = found / best - 1;
    ++num_instances;
    num_optimal += gap < 1e-9;
    worst = gap > worst ? gap : worst;
    sum += gap;
  }
  double mean() const { return num_instances > 0 ? sum / num_instances : 0; }
};

}  // namespace weir::plan

#endif  // WEIR_TESTS_PLAN_PAPERS_RANDOM_WORK_H_
