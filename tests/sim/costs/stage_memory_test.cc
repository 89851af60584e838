// SPDX-License-Identifier: Apache-2.0
// Compares the memory that the simulator predicts for a stage's passes with the
// buffers of the stage that weir-calibrate runs: equal to the byte.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "calibrate/execute/stage/stage_program.h"
#include "calibrate/profile/runtime.h"
#include "models/model.h"
#include "models/partition.h"
#include "sim/costs/stage_costs.h"
#include "sim/costs/work_spec.h"
#include "tests/sim/measured.h"

namespace weir::sim::stage_memory_test {

scenarios::ResolvedScenario Scenario(const char* model, bool fused,
                                     bool dropout) {
  Measured none;
  none.num_ranks = 0;
  scenarios::ResolvedScenario resolved = Resolve(none, OneSwitch(1, 1e9, 0));
  resolved.model = *models::LoadModel(model);
  resolved.runtime = *calibrate::LoadRuntime("weir");
  resolved.scenario.mutable_batch()->set_sequence_length(512);
  resolved.scenario.mutable_batch()->set_microbatch_size(2);
  Training& training = *resolved.scenario.mutable_training();
  training.set_precision(MIXED_BF16);
  training.set_optimizer(ADAM);
  training.set_fp32_gradients(true);
  training.set_flash_attention(fused);
  training.set_dropout(dropout);
  MatrixRate* rate = resolved.device.add_matrix_rates();
  rate->set_format("bf16");
  rate->mutable_peak_flops()->set_value(1e15);
  return resolved;
}

struct Case {
  const char* model;
  bool fused, dropout;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.model << (c.fused ? ", fused" : ", unfused")
       << (c.dropout ? ", dropout" : "");
}

class StageMemoryTest : public testing::TestWithParam<Case> {};

TEST_P(StageMemoryTest, PeakOfEveryPassIsTheSimulators) {
  const auto [name, fused, dropout] = GetParam();
  const scenarios::ResolvedScenario resolved = Scenario(name, fused, dropout);
  const auto costs = ComputeCosts(resolved, 4, {1, 1, 1, 1});
  ASSERT_TRUE(costs.ok()) << costs.status();
  calibrate::StageSpec spec;
  spec.work = MakeWorkSpec(resolved);
  spec.fused_attention = fused;
  spec.dropout = dropout ? 0.1F : 0;
  const models::Partition cuts =
      *models::PartitionEvenly(models::LayersOf(resolved.model, spec.work), 4);
  for (int s = 0; s < 4; ++s) {
    const StageCosts& stage = costs->stages[s];
    spec.first_layer = cuts.first[s];
    spec.last_layer = cuts.first[s + 1];
    const auto program = calibrate::BuildStageProgram(resolved.model, spec);
    ASSERT_TRUE(program.ok()) << program.status();
    const double always = stage.parameters.weight_bytes +
                          stage.parameters.gradient_bytes +
                          stage.parameters.optimizer_state_bytes;
    ASSERT_EQ(calibrate::StaticBytes(*program), always);
    EXPECT_EQ(program->ops(calibrate::ProgramPass::kOptimizer)[0].kernels[0],
              stage.step.kernel->kernel);
    for (const int alive : {0, 3}) {
      const double kept = always + (alive + 1) * stage.activations.saved_bytes;
      const double received = s < 3 ? stage.communication.output_bytes : 0;
      EXPECT_EQ(kept + stage.activations.forward_scratch_bytes,
                calibrate::PeakBytes(*program, calibrate::ProgramPass::kForward,
                                     alive));
      EXPECT_EQ(kept + received + stage.activations.backward_scratch_bytes,
                calibrate::PeakBytes(
                    *program, calibrate::ProgramPass::kBackwardInput, alive));
      EXPECT_LE(calibrate::PeakBytes(
                    *program, calibrate::ProgramPass::kBackwardWeight, alive),
                calibrate::PeakBytes(
                    *program, calibrate::ProgramPass::kBackwardInput, alive));
    }
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* model :
       {"gpt2", "gpt-2.2b", "llama-2-7b", "mistral-7b-v0.1"}) {
    for (const bool fused : {false, true}) {
      for (const bool dropout : {false, true}) {
        cases.push_back({model, fused, dropout});
      }
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Models, StageMemoryTest, testing::ValuesIn(Cases()));

}  // namespace weir::sim::stage_memory_test
