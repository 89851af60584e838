// SPDX-License-Identifier: Apache-2.0
// Compares the memory counts of a replay, class by class, with those of the
// simulator for the same schedule, stages and times.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "calibrate/profile/runtime.h"
#include "sim/costs/work_spec.h"
#include "tests/calibrate/execute/executions.h"
#include "tests/sim/by_costs.h"

namespace weir::calibrate::execution_memory_test {

constexpr double kMostDifference = 1e-4;  // relative to a rank's peak

double PassSeconds(int /*stage*/, ProgramPass pass) {
  return pass == ProgramPass::kOptimizer ? 0 : 1;
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

scenarios::ResolvedScenario ScenarioOf(const Model& model) {
  sim::Measured none;
  none.num_ranks = 0;
  scenarios::ResolvedScenario resolved =
      sim::Resolve(none, sim::OneSwitch(1, 1e9, 0));
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

// Bytes are counted as on a GPU; the host stores doubles.
struct Both {
  ExecutionPlan plan;
  ExecutionRecord record;
  std::vector<sim::MemoryTimeline> simulated;  // by rank
};

Both RunBoth(const schedules::Schedule& schedule) {
  Both both;
  const Model model = SmallModel(schedule.num_stages);
  const scenarios::ResolvedScenario resolved = ScenarioOf(model);
  auto costs = sim::ComputeCosts(resolved, schedule.num_stages,
                                 std::vector<int>(schedule.num_stages, 1));
  EXPECT_TRUE(costs.ok()) << costs.status();
  for (sim::StageCosts& stage : costs->stages) {
    stage.seconds.forward = 1;
    stage.seconds.backward_parts = {1, 1};
    stage.seconds.backward = 2;
    stage.seconds.offload = 0;
    stage.step.seconds = stage.step.update_seconds = 0;
    stage.launches = {};
  }
  const double rate = 20 * costs->stages[0].communication.output_bytes;

  ExecutionRequest request;
  request.schedule = schedule;
  request.model = model;
  request.spec.work = sim::MakeWorkSpec(resolved);
  request.spec.fused_attention = true;
  // Both have the state of Adam. Spike compensation needs a velocity.
  request.optimizer.kind =
      absl::StrContains(schedule.name, "spike-compensation") ? SGD_MOMENTUM
                                                             : ADAM;
  request.link.bytes_per_second = rate;
  both.plan = PlanOf(request);
  const auto device = MakeHostDevice(
      both.plan, {.concurrent = false, .fake_seconds = PassSeconds});
  auto record = ExecuteSchedule(both.plan, device.get());
  EXPECT_TRUE(record.ok()) << record.status();
  if (record.ok()) both.record = *std::move(record);

  sim::ByCosts by_costs{schedule, *costs};
  by_costs.cluster = sim::OneSwitch(schedule.num_ranks, rate, 0);
  const sim::CostsRun run(by_costs);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    both.simulated.push_back(run.Memory(rank));
  }
  return both;
}

// Returns the simulator's bytes of a class of the replay.
double Simulated(const sim::MemoryByKind& kinds, MemoryClass::Kind memory) {
  double bytes = 0;
  for (int kind = 0; kind < MemoryClass::Kind_ARRAYSIZE; ++kind) {
    const int of =
        kind == MemoryClass::END_ACTIVATIONS ? MemoryClass::ACTIVATIONS : kind;
    if (of == memory) bytes += kinds[kind];
  }
  return bytes;
}

// Excludes a known difference: in inference, the simulator frees layer by layer
// what training keeps until the backward; a stage's program does not.
bool IsComparable(const schedules::Schedule& schedule) {
  return !schedule.forward_only;
}

// Returns the bytes of a prediction that the replay stores and the simulator
// does not count, as it assumes that PipeMare's backward predicts weights on
// the fly.
double WithoutEstimate(const schedules::Schedule& schedule,
                       const RankRecord& rank) {
  const schedules::WeightPolicy& policy = schedule.weights;
  if (policy.prediction == schedules::WeightPolicy::Prediction::kNone ||
      policy.predicted_copies > 0) {
    return 0;
  }
  return rank.peak_by_class[static_cast<int>(MemoryClass::PREDICTED_WEIGHTS)];
}

class ExecutionMemoryTest : public testing::TestWithParam<NamedShape> {};

TEST_P(ExecutionMemoryTest, PeaksAreTheSimulators) {
  const schedules::Schedule schedule =
      Generated(GetParam().name, GetParam().spec);
  if (!IsComparable(schedule)) return;
  const Both both = RunBoth(schedule);
  ASSERT_FALSE(both.record.steps.empty());
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const RankRecord& replayed = both.record.steps[0].ranks[rank];
    const sim::MemoryTimeline& simulated = both.simulated[rank];
    const double most = kMostDifference * simulated.peak_bytes;
    const double estimate = WithoutEstimate(schedule, replayed);
    EXPECT_NEAR(replayed.peak_bytes - estimate, simulated.peak_bytes, most)
        << "rank " << rank;
    for (int i = 0; i < MemoryClass::Kind_ARRAYSIZE; ++i) {
      const auto memory = static_cast<MemoryClass::Kind>(i);
      const bool estimates = memory == MemoryClass::PREDICTED_WEIGHTS;
      EXPECT_NEAR(replayed.peak_by_class[i] - (estimates ? estimate : 0),
                  Simulated(simulated.peak_by_kind, memory), most)
          << MemoryClass::Kind_Name(memory) << " of rank " << rank;
    }
    EXPECT_NEAR(replayed.memory.back().bytes, simulated.final_bytes, 1)
        << "rank " << rank;
    // In program order, every buffer is allocated in time, and only a few
    // buffers wait.
    EXPECT_GE(replayed.taken_peak_bytes, replayed.peak_bytes * (1 - 1e-3));
    EXPECT_LE(replayed.taken_peak_bytes, replayed.peak_bytes * 1.07);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ExecutionMemoryTest,
                         testing::ValuesIn(AllShapes()), [](const auto& info) {
                           return TestName(info.param.name);
                         });

}  // namespace weir::calibrate::execution_memory_test
