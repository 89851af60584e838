// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/stage_walk.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "tests/calibrate/execute/reference/op_case.h"
#include "tests/calibrate/execute/reference/small_models.h"

namespace weir::calibrate::stage_walk_test {

// The parameters are: Llama (else GPT), fused attention, dropout.
class StageWalkTest
    : public testing::TestWithParam<std::tuple<bool, bool, float>> {
 protected:
  StageProgram Program(int first_layer = 0, int last_layer = 4) const {
    const auto [llama, fused, dropout] = GetParam();
    StageSpec spec = SmallSpec(fused, dropout);
    spec.first_layer = first_layer;
    spec.last_layer = last_layer;
    const auto program =
        BuildStageProgram(llama ? SmallLlama() : SmallGpt(), spec);
    EXPECT_TRUE(program.ok()) << program.status();
    return *program;
  }
};

TEST_P(StageWalkTest, EveryBufferIsThereWhenAnOperationUsesItAndNoneStays) {
  for (const auto& [first, last] : {std::pair(0, 4), {0, 2}, {1, 3}, {2, 4}}) {
    const StageProgram program = Program(first, last);
    std::set<std::pair<int, int>> there;  // (microbatch, buffer)
    for (const StageStep& step : WalkStage(program, 3)) {
      const auto key = std::pair(step.microbatch, step.buffer);
      if (step.kind == StageStep::Kind::kAllocate) {
        EXPECT_TRUE(there.insert(key).second);
      } else if (step.kind == StageStep::Kind::kFree) {
        EXPECT_EQ(there.erase(key), 1u);
      } else {
        const StageOp& op = program.ops(step.pass)[step.op];
        for (const auto* views : {&op.inputs, &op.outputs}) {
          for (const TensorView& view : *views) {
            if (!view.present()) continue;
            EXPECT_TRUE(there.contains({step.microbatch, view.buffer}) ||
                        there.contains({-1, view.buffer}))
                << op.name << " needs " << program.buffers[view.buffer].name;
          }
        }
      }
    }
    EXPECT_TRUE(there.empty());
  }
}

TEST_P(StageWalkTest, ThePeakIsThatOfThePassesFormula) {
  const StageProgram program = Program();
  for (const int num_microbatches : {1, 2, 5}) {
    int64_t expected = 0;
    for (const ProgramPass pass :
         {ProgramPass::kForward, ProgramPass::kBackwardInput,
          ProgramPass::kBackwardWeight, ProgramPass::kOptimizer}) {
      const int alive =
          pass == ProgramPass::kOptimizer ? 0 : num_microbatches - 1;
      expected = std::max(expected, PeakBytes(program, pass, alive));
    }
    EXPECT_EQ(PeakOfWalk(program, WalkStage(program, num_microbatches), 1),
              expected);
  }
}

INSTANTIATE_TEST_SUITE_P(All, StageWalkTest,
                         testing::Combine(testing::Bool(), testing::Bool(),
                                          testing::Values(0.0F, 0.25F)));

TEST(StageWalkTest, RoundingCountsPerBuffer) {
  StageProgram program;
  program.buffers = {
      {"weights", BufferClass::kWeights, ElementFormat::kUint8, 1},
      {"gradients", BufferClass::kGradients, ElementFormat::kUint8, 513}};
  const auto steps = WalkStage(program, 1);
  EXPECT_EQ(PeakOfWalk(program, steps, 1), 514);
  EXPECT_EQ(PeakOfWalk(program, steps, 512), 512 + 1024);
}

}  // namespace weir::calibrate::stage_walk_test
