// SPDX-License-Identifier: Apache-2.0
// Weights, gradients and states shared out over the replicas.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/simulate.h"
#include "tests/sim/hand_schedules.h"
#include "tests/sim/measured.h"

namespace weir {
namespace {

// One stage per layer, on `num_ranks` ranks and two replicas.
ResolvedScenario Sharded(int num_ranks, int num_stages, int num_microbatches) {
  Measured measured;
  measured.num_ranks = num_stages;  // layers
  measured.num_microbatches = num_microbatches;
  measured.num_replicas = 2;
  measured.overlapped_reduction = true;
  for (int s = 0; s < num_stages; ++s) {
    measured.forward_seconds.push_back(10);
    measured.backward_seconds.push_back(20);
    measured.activation_bytes.push_back(0);
    measured.parameter_bytes.push_back(400 * (s + 1));
  }
  ResolvedScenario resolved =
      Resolve(measured, OneSwitch(2 * num_ranks, 100, 0));
  resolved.placement = {1, 2, num_ranks, {}};
  for (int gpu = 0; gpu < 2 * num_ranks; ++gpu) {
    resolved.placement.gpus.push_back(gpu);
  }
  resolved.scenario.mutable_training()->set_fully_sharded(true);
  return resolved;
}

// Breadth-first's point: two gathers and one reduction per chunk and batch,
// however many microbatches there are.
TEST(ShardedTest, BreadthFirstGathersTwiceWhateverTheBatch) {
  for (int num_microbatches : {1, 2, 5, 16}) {
    const Result result = RunByHand(Sharded(2, 6, num_microbatches),
                                    BreadthFirst(2, 3, num_microbatches));
    std::map<std::pair<int, int>, int> counts;  // by kind and stage
    const auto& events = result.timeline().collectives();
    for (int i = 0; i < events.gpu_size(); ++i) {
      if (events.gpu(i) < 2) ++counts[{events.kind(i), events.stage(i)}];
    }
    for (int s = 0; s < 6; ++s) {
      EXPECT_EQ((counts[{2, s}]), 2) << num_microbatches;
      EXPECT_EQ((counts[{1, s}]), 1) << num_microbatches;
    }
  }
}

// 1F1B turns round for every microbatch: its weights come again each time.
TEST(ShardedTest, OneForwardOneBackwardGathersForEveryTurn) {
  const Schedule schedule =
      ByHand({{0}}, 3, {Actions({"0F0", "0B0", "0F1", "0B1", "0F2", "0B2"})});
  const Result result = RunByHand(Sharded(1, 1, 3), schedule);
  int gathers = 0;
  const auto& events = result.timeline().collectives();
  for (int i = 0; i < events.gpu_size(); ++i) {
    gathers += events.gpu(i) == 0 && events.kind(i) == 2;
  }
  EXPECT_EQ(gathers, 6);
}

// Two chunks on one rank, weights of 400 and 800 bytes, half of it from the
// other replica at 100 bytes a second; the next gather runs beside the passes.
//   gathers   0..2, 2..6, 12..16, 22..24
//   passes    F 2..12, F 12..22, B 22..42, B 42..62
//   reductions scatter half the gradients: 42..46, 62..64
TEST(ShardedTest, GathersRunAheadByOneRun) {
  const Result result = RunByHand(Sharded(1, 2, 1), BreadthFirst(1, 2, 1));
  const auto& actions = result.timeline().actions();
  const double starts[] = {2, 12, 22, 42};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(actions.start_seconds(i), starts[i], 1e-9);
  }
  std::map<double, double> spans[3];  // by kind
  const auto& events = result.timeline().collectives();
  for (int i = 0; i < events.gpu_size(); ++i) {
    if (events.gpu(i) != 0) continue;
    spans[events.kind(i)][events.start_seconds(i)] = events.end_seconds(i);
  }
  const std::map<double, double> gathers = {{0, 2}, {2, 6}, {12, 16}, {22, 24}};
  ASSERT_EQ(spans[2].size(), gathers.size());
  for (auto [a, b] = std::pair(spans[2].begin(), gathers.begin());
       b != gathers.end(); ++a, ++b) {
    EXPECT_NEAR(a->first, b->first, 1e-9);
    EXPECT_NEAR(a->second, b->second, 1e-9);
  }
  EXPECT_NEAR(result.makespan_seconds(), 64, 1e-9);
  EXPECT_NEAR(result.ranks(0).exposed_communication_seconds(), 2 + 2, 1e-9);
}

TEST(ShardedTest, MemoryIsDividedButForWhatIsInUse) {
  const Result result = RunByHand(Sharded(1, 2, 1), BreadthFirst(1, 2, 1));
  std::map<std::string, double> classes;
  for (const MemoryClass& entry : result.ranks(0).peak_memory_classes()) {
    classes[entry.name()] = entry.bytes();
  }
  // While the second chunk runs back: its weights in full, those of the first
  // for the run after, and the gradients that it makes.
  EXPECT_EQ(classes["weights"], (400 + 800) / 2);
  EXPECT_EQ(classes["optimizer_state"], 2 * (400 + 800) / 2);
  EXPECT_EQ(classes["gradients"], (400 + 800) / 2 + 800);
  EXPECT_EQ(classes["gathered_weights"], 400 + 800);
  EXPECT_NEAR(result.ranks(0).peak_memory_at_seconds(), 22, 1e-9);
  const auto& memory = result.timeline().memory();
  EXPECT_EQ(memory.bytes(memory.bytes_size() - 1), 600 + 600 + 1200);
}

// A step moves a replica's shard only.
TEST(ShardedTest, StepsTakeTheirShareOfTheTime) {
  ResolvedScenario scenario = Sharded(1, 1, 1);
  scenario.device.mutable_memory_bytes_per_second()->set_value(100);
  const Schedule schedule = BreadthFirst(1, 1, 1);
  const double sharded = RunByHand(scenario, schedule).makespan_seconds();
  // Gathers of 2 s (the second beside the forward), a reduction of 2 s. The
  // step moves gradients, states twice, weights twice: 7 x 400 bytes by halves.
  EXPECT_NEAR(sharded, 2 + 30 + 2 + 7 * 400 / 100 / 2.0, 1e-9);
}

}  // namespace
}  // namespace weir
