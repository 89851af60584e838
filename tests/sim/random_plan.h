// SPDX-License-Identifier: Apache-2.0
// Scenarios that a planner may ask for, and worse ones: everything drawn,
// small.
#ifndef WEIR_TESTS_SIM_RANDOM_PLAN_H_
#define WEIR_TESTS_SIM_RANDOM_PLAN_H_

#include <random>
#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace weir {

class RandomPlan {
 public:
  static constexpr int kMostRanks = 8;

  explicit RandomPlan(int seed) : random_(seed) {}

  // By a model or, one in six, by textbook costs.
  Scenario DrawScenario();

  // Into what no preset has: adapters, PCIe, leaf switches, devices, runtimes,
  // placements.
  void Change(ResolvedScenario* resolved);

 private:
  int Int(int low, int high) {
    return std::uniform_int_distribution<>(low, high)(random_);
  }
  double Real(double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random_);
  }
  bool OneIn(int n) { return Int(1, n) == 1; }
  template <typename T>
  T Of(std::vector<T> choices) {
    return choices[Int(0, static_cast<int>(choices.size()) - 1)];
  }

  void DrawShape(Scenario* scenario);
  // Many, where that does not make the full simulation long.
  int DrawMicrobatches(const Scenario& scenario);
  void DrawTextbook(Scenario* scenario);
  void DrawModel(Scenario* scenario);
  void DrawTraining(Scenario* scenario);
  void DrawBlocks(Scenario* scenario);

  void ChangeNodes(Cluster* cluster);
  void ChangeAdapters(Node* node);
  void SlowOneNode(Cluster* cluster);
  void ChangeDevice(ResolvedScenario* resolved);
  void SlowOneGpu(ResolvedScenario* resolved);
  void ChangePlacement(Placement* placement);

  std::mt19937 random_;
};

}  // namespace weir

#endif  // WEIR_TESTS_SIM_RANDOM_PLAN_H_
