// SPDX-License-Identifier: Apache-2.0
// Draws small scenarios that a planner may evaluate, and less sensible ones.
#ifndef WEIR_TESTS_SIM_RANDOM_PLAN_H_
#define WEIR_TESTS_SIM_RANDOM_PLAN_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "scenarios/scenario.h"
#include "tests/random_source.h"

namespace weir::sim {

class RandomPlan {
 public:
  static constexpr int kMostRanks = 8;

  // Limits of the size of a scenario.
  struct Limits {
    uint32_t num_gpus = 128;  // at least kMostRanks
    // Actions of a full simulation, unless a few microbatches per rank already
    // need more.
    int num_actions = 16000;
  };

  explicit RandomPlan(int seed)
      : random_(seed), mersenne_(&random_), source_(mersenne_) {}
  // `source` must outlive this object.
  RandomPlan(RandomSource* source, const Limits& limits)
      : mersenne_(&random_), source_(*source), limits_(limits) {}

  // Draws a model or, one time in six, given costs.
  Scenario DrawScenario();

  // Changes values that presets fix: adapters, PCIe, leaf switches, devices,
  // runtimes, placements.
  void Change(scenarios::ResolvedScenario* resolved);

 private:
  int Int(int low, int high) { return source_.Int(low, high); }
  double Real(double low, double high) { return source_.Real(low, high); }
  bool OneIn(int n) { return source_.OneIn(n); }
  template <typename T>
  T Of(const std::vector<T>& choices) {
    return source_.Of(choices);
  }

  void DrawShape(Scenario* scenario);
  // Draws many microbatches unless that makes the full simulation long.
  int DrawMicrobatches(const Scenario& scenario);
  void DrawGivenCosts(Scenario* scenario);
  void DrawModel(Scenario* scenario);
  void DrawTraining(Scenario* scenario);
  void DrawBlocks(Scenario* scenario);
  void DrawContext(Scenario* scenario);
  void DrawRecipe(Scenario* scenario);

  void ChangeNodes(Cluster* cluster);
  void ChangeAdapters(Node* node);
  void SlowOneNode(Cluster* cluster);
  void ChangeDevice(scenarios::ResolvedScenario* resolved);
  void SlowOneGpu(scenarios::ResolvedScenario* resolved);
  void ChangePlacement(scenarios::Placement* placement);

  std::mt19937 random_;  // unused if a source is given
  MersenneSource mersenne_;
  RandomSource& source_;
  Limits limits_;
};

}  // namespace weir::sim

#endif  // WEIR_TESTS_SIM_RANDOM_PLAN_H_
