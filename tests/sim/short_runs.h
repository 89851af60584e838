// SPDX-License-Identifier: Apache-2.0
// Short and whole runs of schedules with random costs.
#ifndef WEIR_TESTS_SIM_SHORT_RUNS_H_
#define WEIR_TESTS_SIM_SHORT_RUNS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <random>

#include "schedules/registry.h"
#include "schedules/semantics.h"
#include "sim/engine/engine.h"
#include "sim/engine/longest_path.h"
#include "sim/fast/steady.h"
#include "tests/sim/measured.h"

namespace weir::sim {

struct World {
  Costs costs;
  std::optional<Cluster> cluster;  // none: given hops
  double hop_seconds = 0;
  bool blocking = false;
  int data = 1;
};

struct OneRun {
  schedules::Semantics semantics;
  scenarios::Placement placement;
  Communication communication;
  std::unique_ptr<scenarios::Network> network;
  PipelineGraph graph;
  Recording recording{0};

  OneRun(const schedules::Schedule& schedule, const World& world)
      : semantics(schedules::InterpretSchedule(schedule).value()),
        placement{1, world.data, schedule.num_ranks, {}} {
    placement.gpus.resize(placement.num_gpus());
    std::iota(placement.gpus.begin(), placement.gpus.end(), 0);
    network = world.cluster.has_value()
                  ? std::make_unique<scenarios::Network>(*world.cluster)
                  : std::make_unique<scenarios::Network>(
                        scenarios::Network::OfGivenCosts(placement.num_gpus(),
                                                         world.hop_seconds));
    communication.set_transfers(world.blocking ? BLOCKING : OVERLAPPED);
    graph = BuildPipelineGraph(Inputs(schedule, world));
    if (world.cluster.has_value()) {
      auto run = RunTaskGraph(graph.tasks, network->links());
      EXPECT_TRUE(run.ok()) << run.status();
      if (run.ok()) recording = *std::move(run);
    } else {
      recording = *LongestPath(graph.tasks, network->links());
    }
  }
  PipelineInputs Inputs(const schedules::Schedule& schedule,
                        const World& world) const {
    return {schedule, semantics, world.costs,
            *network, placement, communication};
  }
  double Makespan() const {
    const auto ends = recording.end_seconds();
    return *std::max_element(ends.begin(), ends.end());
  }
};

class Cases {
 public:
  explicit Cases(int seed) : random_(seed) {}
  int Int(int low, int high) {
    return std::uniform_int_distribution<>(low, high)(random_);
  }
  double Seconds(double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random_);
  }

  std::optional<schedules::Schedule> Next(const schedules::ScheduleKind& kind) {
    for (int k = 0; k < 200; ++k) {
      schedules::ScheduleSpec spec;
      spec.num_ranks = Int(1, 5);
      spec.num_chunks = Int(1, 3);
      spec.num_microbatches = Int(40, 120);
      if (kind.check(spec).ok()) return kind.generate(spec);
    }
    return std::nullopt;
  }

  Costs CostsFor(int num_stages) {
    Costs costs;
    const int how = Int(0, 2);  // equal, small integers, or any
    for (int s = 0; s < num_stages; ++s) {
      StageCosts stage;
      if (s > 0 && how == 0) {
        costs.stages.push_back(costs.stages[0]);
        continue;
      }
      const auto draw = [&](double low, double high) {
        return how == 1 ? static_cast<double>(Int(1, 3)) : Seconds(low, high);
      };
      stage.seconds.forward = draw(0.5, 1.5);
      BackwardParts& parts = stage.seconds.backward_parts.emplace();
      parts.input = draw(0.5, 1.5);
      parts.weight = draw(0.3, 1);
      stage.seconds.backward = parts.input + parts.weight;
      // Large, as the engine is exact only to fractions of a byte.
      stage.communication.output_bytes = Int(0, 3) == 0 ? 0 : 1e9 * Int(10, 90);
      stage.step.seconds = 0.5;
      stage.activations.saved_bytes = Int(10, 100);
      costs.stages.push_back(stage);
    }
    return costs;
  }

 private:
  std::mt19937 random_;
};

struct Extrapolated {
  bool shortened = false;
  std::optional<double> seconds;
};

// Extrapolates like a planner, with more periods if necessary.
inline Extrapolated Extrapolate(const schedules::Schedule& schedule,
                                const World& world) {
  Extrapolated result;
  ShortenOptions options;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const auto shortened = ShortenSchedule(schedule, options);
    if (!shortened.has_value()) break;
    result.shortened = true;
    const OneRun run(shortened->schedule, world);
    int multiple = 0;
    const auto steadiness =
        FindSteadiness(*shortened, run.graph, run.recording, &multiple);
    if (steadiness.has_value()) {
      result.seconds = run.Makespan() + steadiness->seconds_left_out;
      break;
    }
    options = NextTry(*shortened, options, multiple);
  }
  return result;
}

inline World WorldFor(const schedules::ScheduleKind& kind,
                      const schedules::Schedule& schedule, bool shared,
                      Cases* cases) {
  World world;
  world.costs = cases->CostsFor(schedule.num_stages);
  world.hop_seconds = cases->Int(0, 1) == 0 ? 0 : cases->Seconds(0, 0.8);
  world.blocking = kind.name == "1f1b" && cases->Int(0, 3) == 0;
  if (shared) {
    world.data = cases->Int(1, 2);
    world.cluster = SharedNics(schedule.num_ranks * world.data, 100e9, 0.01);
  }
  return world;
}

}  // namespace weir::sim

#endif  // WEIR_TESTS_SIM_SHORT_RUNS_H_
