// SPDX-License-Identifier: Apache-2.0
// Checks that passes are slower while flows transfer data on their GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "scenarios/cluster/cluster.h"
#include "sim/costs/scenario_figures.h"
#include "sim/engine/engine.h"
#include "sim/graph/communication_lowering.h"
#include "sim/simulate.h"
#include "tests/fluid.h"
#include "tests/sim/measured.h"

namespace weir::sim::slowdown_test {

// Two GPUs, each with one kernel flow and one copy flow of 1 GB/s. Passes are
// slower by the factors `kernels` and `copies` while such a flow runs.
class Lab {
 public:
  Lab(double kernels, double copies) {
    for (int i = 0; i < 4; ++i) links_.push_back({"link", 1e9});
    graph_.pairs = {
        {0, 2, {{0}, 0}}, {1, 3, {{1}, 0}}, {0, 4, {{2}, 0}}, {1, 5, {{3}, 0}}};
    graph_.slowdowns.touches = {{Mover::kKernels, {0}},
                                {Mover::kKernels, {1}},
                                {Mover::kCopies, {0}},
                                {Mover::kCopies, {1}}};
    graph_.slowdowns.factors.assign(6, {kernels, copies});
  }

  int32_t Pass(int gpu, double seconds) {
    const int32_t task = graph_.AddTimer(seconds);
    graph_.slowdowns.timers.resize(task + 1);
    graph_.slowdowns.timers[task].gpu = gpu;
    return task;
  }
  int32_t Wait(double seconds) { return graph_.AddTimer(seconds); }
  int32_t Kernels(int gpu, double seconds) {
    return graph_.AddFlow(gpu, std::round(1e9 * seconds));
  }
  int32_t Copies(int gpu, double seconds) {
    return graph_.AddFlow(2 + gpu, std::round(1e9 * seconds));
  }
  void After(int32_t task, int32_t before) { graph_.AddEdge(before, task); }

  std::vector<double> Run() {
    graph_.Finish();
    if (!graph_.slowdowns.timers.empty()) {
      graph_.slowdowns.timers.resize(graph_.num_tasks());
    }
    const auto recording = RunTaskGraph(graph_, links_);
    EXPECT_TRUE(recording.ok()) << recording.status();
    const auto end = recording->end_seconds();
    return {end.begin(), end.end()};
  }
  TaskGraph& graph() { return graph_; }

 private:
  TaskGraph graph_;
  std::vector<scenarios::Link> links_;
};

TEST(SlowdownTest, APassWhollyUnderAFlowIsSlowerByTheFactor) {
  Lab lab(1.2, 1);
  lab.Pass(0, 1);
  lab.Kernels(0, 2);
  EXPECT_NEAR(lab.Run()[0], 1.2, 1e-12);
}

TEST(SlowdownTest, OnlyWhatLiesUnderTheFlowIsSlower) {
  Lab ends_first(1.2, 1);
  ends_first.Pass(0, 1);
  ends_first.Kernels(0, 0.6);  // half of the pass's work
  EXPECT_NEAR(ends_first.Run()[0], 1.1, 1e-12);

  Lab begins_later(1.2, 1);
  begins_later.Pass(0, 1);
  begins_later.After(begins_later.Kernels(0, 5), begins_later.Wait(0.7));
  EXPECT_NEAR(begins_later.Run()[0], 0.7 + 0.3 * 1.2, 1e-12);
}

TEST(SlowdownTest, EachGpuHasItsOwnFlows) {
  Lab lab(1.2, 1.5);
  const int32_t one = lab.Pass(0, 1), other = lab.Pass(1, 1);
  lab.Kernels(1, 3);
  const auto ends = lab.Run();
  EXPECT_EQ(ends[one], 1);
  EXPECT_NEAR(ends[other], 1.2, 1e-12);
}

TEST(SlowdownTest, CopiesHaveAFactorOfTheirOwnAndTheLargerOfTwoCounts) {
  Lab copies(1.2, 1.5);
  copies.Pass(0, 1);
  copies.Copies(0, 3);
  EXPECT_NEAR(copies.Run()[0], 1.5, 1e-12);
  Lab both(1.2, 1.5);
  both.Pass(0, 1);
  both.Copies(0, 0.75);  // half of the pass, under both
  both.Kernels(0, 3);
  EXPECT_NEAR(both.Run()[0], 0.75 + 0.5 * 1.2, 1e-12);
}

TEST(SlowdownTest, AFactorOfOneChangesNoBit) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    Lab slowable(1, 1), plain(1, 1);
    for (int i = 0; i < 12; ++i) {
      const double seconds = std::uniform_real_distribution<>(0.1, 1)(random);
      const int gpu = static_cast<int>(random() % 2);
      for (Lab* lab : {&slowable, &plain}) {
        const int32_t task =
            i % 3 == 0 ? lab->Kernels(gpu, seconds) : lab->Pass(gpu, seconds);
        if (i >= 2) lab->After(task, i - 2);
      }
    }
    plain.graph().slowdowns = {};
    EXPECT_EQ(slowable.Run(), plain.Run());
  }
}

// Compares small random graphs with an independent computation.
TEST(SlowdownTest, EqualsTheFluidOracle) {
  std::mt19937 random(11);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  for (int round = 0; round < 200; ++round) {
    const fluid::Factors factors = {uniform(1, 2), uniform(1, 2)};
    Lab lab(factors.kernels, factors.copies);
    std::vector<fluid::Task> tasks;
    int32_t last[4] = {-1, -1, -1, -1};  // last flow of each pair
    for (int i = 0; i < 14; ++i) {
      fluid::Task task;
      task.seconds = std::round(uniform(0.05, 1) * 1e9) / 1e9;
      const int gpu = static_cast<int>(random() % 2);
      const int kind = static_cast<int>(random() % 4);
      int32_t added;
      int pair = -1;
      if (kind >= 2) {
        task.copies = kind == 3;
        task.moves = {gpu};
        pair = gpu + (task.copies ? 2 : 0);
        added = task.copies ? lab.Copies(gpu, task.seconds)
                            : lab.Kernels(gpu, task.seconds);
      } else if (kind == 1) {
        task.gpu = gpu;
        added = lab.Pass(gpu, task.seconds);
      } else {
        added = lab.Wait(task.seconds);
      }
      ASSERT_EQ(added, i);
      if (pair >= 0 && last[pair] >= 0) task.after.push_back(last[pair]);
      if (pair >= 0) last[pair] = i;
      for (int before = 0; before < i; ++before) {
        if (random() % 6 == 0) task.after.push_back(before);
      }
      for (int before : task.after) lab.After(i, before);
      tasks.push_back(task);
    }
    const auto expected = fluid::EndSeconds(tasks, {factors, factors});
    const auto ends = lab.Run();
    for (size_t i = 0; i < tasks.size(); ++i) {
      ASSERT_NEAR(ends[i], expected[i], 1e-9 * expected[i])
          << "round " << round << " task " << i;
    }
  }
}

// Two stages, two microbatches, and a link that takes `seconds` per transfer.
scenarios::ResolvedScenario TwoStages(double seconds, double slowdown) {
  Measured measured;
  measured.num_ranks = measured.num_microbatches = 2;
  measured.forward_seconds = {1, 1e-3};
  measured.backward_seconds = {1e-3, 1e-3};
  measured.activation_bytes = {1e9, 0};
  scenarios::ResolvedScenario resolved =
      Resolve(measured, ChainOfLinks(2, 1e9 / seconds, 0));
  Figure* figure = resolved.device.mutable_collective_slowdown();
  figure->set_value(slowdown);
  figure->set_kind(Figure::MEASURED);
  return resolved;
}

double PartOf(const Result& result, const char* name) {
  for (const PartSeconds& part : result.parts()) {
    if (part.name() == name) return part.seconds();
  }
  return 0;
}

TEST(SlowdownTest, AForwardOverlappingASendIsSlowerAndSaysSo) {
  // The second forward runs while the output of the first is sent: it does half
  // of its work in 0.6 s.
  const auto result = Simulate(TwoStages(0.6, 1.2));
  ASSERT_TRUE(result.ok()) << result.status();
  // A backward of 1 ms overlaps with the last gradient's transfer.
  EXPECT_NEAR(PartOf(*result, "overlap_slowdown"), 0.1 + 0.2e-3, 1e-9);
  double sum = 0;
  for (const PartSeconds& part : result->parts()) sum += part.seconds();
  EXPECT_NEAR(sum, result->batch_seconds(), 1e-9);
  const auto without = Simulate(TwoStages(0.6, 1));
  ASSERT_TRUE(without.ok());
  EXPECT_NEAR(result->batch_seconds(), without->batch_seconds() + 0.1, 1e-9);
  EXPECT_EQ(PartOf(*without, "overlap_slowdown"), 0);
}

TEST(SlowdownTest, TheFigureHasItsShareOfTheTime) {
  const scenarios::ResolvedScenario scenario = TwoStages(0.6, 1.2);
  const auto figures = FiguresOf(scenario);
  const auto before = Simulate(scenario);
  for (size_t i = 0; i < figures.size(); ++i) {
    if (figures[i].path != "collective_slowdown") continue;
    const auto after =
        Simulate(WithFigure(scenario, static_cast<int>(i), 1.01));
    // 0.6 s at 1.212 do 0.495 s of the work; the remaining 0.505 s run at full
    // speed.
    EXPECT_NEAR(after->batch_seconds() - before->batch_seconds(),
                0.6 / 1.2 - 0.6 / 1.212, 1e-9);
    return;
  }
  FAIL() << "no figure collective_slowdown";
}

TEST(SlowdownTest, OneHopOfAReducedRingTouchesAllOfItsGpus) {
  const scenarios::Network network(*scenarios::LoadCluster("dgx-a100", 1));
  TaskGraph tasks;
  CommunicationLowering lowering(network, nullptr, nullptr, &tasks);
  const Group group = lowering.GroupOf({1, 3, 5});
  lowering.AddCollectives(
      group, Collectives{models::CollectiveKind::kAllReduce, 1e9, 1},
      tasks.AddTimer(0), tasks.AddTimer(0));
  const int32_t host = lowering.HostPairOf(2, /*to_host=*/true);
  tasks.AddFlow(host, 1e9);
  lowering.MergeHops();
  const auto touches = lowering.Touches();
  EXPECT_EQ(touches[group.intra_hops[0]].gpus, std::vector<int32_t>({1, 3, 5}));
  EXPECT_EQ(touches[group.intra_hops[0]].mover, Mover::kKernels);
  EXPECT_EQ(touches[host].gpus, std::vector<int32_t>({2}));
  EXPECT_EQ(touches[host].mover, Mover::kCopies);
}

}  // namespace weir::sim::slowdown_test
