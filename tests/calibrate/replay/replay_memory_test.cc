// SPDX-License-Identifier: Apache-2.0
// What a replay counts of memory, class by class, against what the simulator
// says of the same schedule, stages and times.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>

#include "calibrate/runtime.h"
#include "sim/work_spec.h"
#include "tests/calibrate/replay/replays.h"
#include "tests/sim/by_costs.h"

namespace weir {
namespace {

double PassSeconds(int /*stage*/, StagePass pass) {
  return pass == StagePass::kOptimizer ? 0 : 1;
}

Model SmallModel(int num_layers) {
  Model model = TinyGpt(num_layers);
  Transformer& t = *model.mutable_transformer();
  t.set_hidden_size(16);
  t.set_num_heads(2);
  t.set_num_kv_heads(2);
  t.set_head_size(8);
  t.set_feed_forward_size(64);
  t.set_vocabulary_size(24);
  t.set_num_positions(16);
  t.set_tied_embeddings(false);
  return model;
}

ResolvedScenario Scenario(const Model& model, int num_ranks) {
  Measured none;
  none.num_ranks = num_ranks;
  ResolvedScenario resolved = Resolve(none, OneSwitch(num_ranks, 1e9, 0));
  resolved.model = model;
  resolved.runtime = *LoadRuntime("weir");
  resolved.scenario.mutable_batch()->set_sequence_length(16);
  resolved.scenario.mutable_batch()->set_microbatch_size(2);
  Training& training = *resolved.scenario.mutable_training();
  training.set_precision(MIXED_BF16);
  training.set_optimizer(ADAM);
  training.set_fp32_gradients(true);
  training.set_flash_attention(true);
  training.set_stash_bytes_per_parameter(2);
  MatrixRate* rate = resolved.device.add_matrix_rates();
  rate->set_format("bf16");
  rate->mutable_peak_flops()->set_value(1e15);
  return resolved;
}

// Bytes as on a GPU; the host keeps doubles.
struct Both {
  ReplayPlan plan;
  ReplayRecord record;
  std::vector<MemoryTimeline> simulated;  // [rank]
};

Both RunBoth(const Schedule& schedule) {
  Both both;
  const Model model = SmallModel(schedule.num_stages);
  const ResolvedScenario resolved = Scenario(model, schedule.num_ranks);
  auto costs = ComputeCosts(resolved, schedule.num_stages,
                            std::vector<int>(schedule.num_stages, 1));
  EXPECT_TRUE(costs.ok()) << costs.status();
  for (StageCosts& stage : costs->stages) {
    stage.forward_seconds = stage.backward_input_seconds = 1;
    stage.backward_weight_seconds = 1;
    stage.backward_seconds = 2;
    stage.optimizer_seconds = stage.update_seconds = 0;
    stage.forward_host_seconds = stage.backward_input_host_seconds = 0;
    stage.backward_weight_host_seconds = 0;
    stage.offload_seconds = 0;
  }
  const double rate = 20 * costs->stages[0].output_bytes;

  ReplayRequest request;
  request.schedule = schedule;
  request.model = model;
  request.spec.work = MakeWorkSpec(resolved);
  request.spec.fused_attention = true;
  request.optimizer.kind = OptimizerKind::kAdam;
  request.link.bytes_per_second = rate;
  both.plan = PlanOf(request);
  const auto device = MakeHostDevice(
      both.plan, {.concurrent = false, .pretended_seconds = PassSeconds});
  auto record = RunReplay(both.plan, device.get());
  EXPECT_TRUE(record.ok()) << record.status();
  if (record.ok()) both.record = *std::move(record);

  ByCosts by_costs{schedule, *costs};
  by_costs.cluster = OneSwitch(schedule.num_ranks, rate, 0);
  const CostsRun run(by_costs);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    both.simulated.push_back(run.Memory(rank));
  }
  return both;
}

// The simulator's classes, as a replay has them.
double Simulated(const MemoryByKind& kinds, ReplayMemory memory) {
  double bytes = 0;
  for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
    const std::string name = Name(static_cast<MemoryKind>(kind));
    const std::string of = name == "end_activations" ? "activations" : name;
    if (of == Name(memory)) bytes += kinds[kind];
  }
  return bytes;
}

class ReplayMemoryTest : public testing::TestWithParam<NamedShape> {};

TEST_P(ReplayMemoryTest, PeaksAreTheSimulators) {
  const Schedule schedule = Generated(GetParam().name, GetParam().spec);
  const Both both = RunBoth(schedule);
  ASSERT_FALSE(both.record.steps.empty());
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const RankRecord& replayed = both.record.steps[0].ranks[rank];
    const MemoryTimeline& simulated = both.simulated[rank];
    EXPECT_NEAR(replayed.peak_bytes / simulated.peak_bytes, 1, 0.005)
        << "rank " << rank;
    for (int i = 0; i < kNumReplayMemories; ++i) {
      const auto memory = static_cast<ReplayMemory>(i);
      EXPECT_NEAR(replayed.peak_by_class[i],
                  Simulated(simulated.peak_by_kind, memory),
                  0.005 * simulated.peak_bytes)
          << Name(memory) << " of rank " << rank;
    }
    if (std::getenv("WEIR_SHOW") != nullptr) {
      std::cout << GetParam().name << " rank " << rank << " replayed "
                << replayed.peak_bytes << " at " << replayed.peak_at_seconds
                << " simulated " << simulated.peak_bytes << " at "
                << simulated.peak_at_seconds << " taken "
                << replayed.taken_peak_bytes << "\n";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReplayMemoryTest,
                         testing::ValuesIn(AllShapes()), [](const auto& info) {
                           return TestName(info.param.name);
                         });

}  // namespace
}  // namespace weir
