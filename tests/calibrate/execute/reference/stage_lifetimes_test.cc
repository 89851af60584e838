// SPDX-License-Identifier: Apache-2.0
// Checks that buffers live long enough for all their readers, and no longer.
#include <tuple>

#include "calibrate/execute/reference/reference_stage.h"
#include "tests/calibrate/execute/reference/op_case.h"
#include "tests/calibrate/execute/reference/small_models.h"

namespace weir::calibrate::stage_lifetimes_test {

StageProgram Build(const Model& model, const StageSpec& spec) {
  const auto program = BuildStageProgram(model, spec);
  EXPECT_TRUE(program.ok()) << program.status();
  return *program;
}

// Runs all three passes. With `strict`, buffers are set to NaN after their last
// operation.
StageBuffers RunPasses(const StageProgram& program, bool strict) {
  StageBuffers buffers = MakeStageBuffers(program);
  buffers[0] = Normal(buffers[0].size(), 5);
  for (const int index : {program.tokens, program.targets}) {
    if (index < 0) continue;
    for (size_t i = 0; i < buffers[index].size(); ++i) {
      buffers[index][i] = static_cast<double>(5 * i % 11);
    }
  }
  for (const int index : {program.input, program.output_gradient}) {
    if (index >= 0) buffers[index] = Normal(buffers[index].size(), 6);
  }
  for (const ProgramPass pass :
       {ProgramPass::kForward, ProgramPass::kBackwardInput,
        ProgramPass::kBackwardWeight}) {
    const auto& ops = program.ops(pass);
    for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
      RunReferenceOp(ops[i], &buffers);
      if (!strict) continue;
      for (size_t b = 0; b < buffers.size(); ++b) {
        const StageBuffer& buffer = program.buffers[b];
        const bool last = buffer.last_pass == pass && buffer.last_op == i;
        const bool output = buffer.buffer_class == BufferClass::kOutput;
        if (buffer.first_op < 0 || !last || output) continue;
        buffers[b].assign(buffers[b].size(), std::nan(""));
      }
    }
  }
  return buffers;
}

class StageLifetimesTest
    : public testing::TestWithParam<std::tuple<bool, bool, float, int>> {
 protected:
  void SetUp() override {
    const auto [llama, fused, dropout, first] = GetParam();
    StageSpec spec = SmallSpec(fused, dropout);
    spec.first_layer = first;
    if (first == 0) spec.last_layer = 2;  // otherwise up to the last layer
    program_ = Build(llama ? SmallLlama() : SmallGpt(), spec);
  }

  StageProgram program_;
};

TEST_P(StageLifetimesTest, NothingIsReadThatIsNotThere) {
  const StageBuffers free = RunPasses(program_, false),
                     strict = RunPasses(program_, true);
  EXPECT_EQ(free[1], strict[1]);
  for (const int out :
       {program_.output, program_.input_gradient, program_.losses}) {
    if (out < 0) continue;
    EXPECT_EQ(free[out], strict[out]);
  }
}

TEST_P(StageLifetimesTest, ClassesSayWhenABufferIsThere) {
  for (const StageBuffer& buffer : program_.buffers) {
    SCOPED_TRACE(buffer.name);
    EXPECT_GT(buffer.num_elements, 0);
    switch (buffer.buffer_class) {
      case BufferClass::kWeights:
      case BufferClass::kGradients:
      case BufferClass::kOptimizerState:
        EXPECT_EQ(buffer.first_op, -1);
        break;
      case BufferClass::kScratch:
        EXPECT_EQ(buffer.first_pass, buffer.last_pass);
        break;
      case BufferClass::kActivations:
        EXPECT_EQ(buffer.first_pass, ProgramPass::kForward);
        EXPECT_EQ(buffer.last_pass, ProgramPass::kBackwardInput);
        break;
      case BufferClass::kWeightGradientStash:
        EXPECT_EQ(buffer.last_pass, ProgramPass::kBackwardWeight);
        break;
      case BufferClass::kInput:
      case BufferClass::kOutput:
        EXPECT_GE(buffer.first_op, 0);
        break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, StageLifetimesTest,
                         testing::Combine(testing::Bool(), testing::Bool(),
                                          testing::Values(0.0F, 0.25F),
                                          testing::Values(0, 1, 2, 3)));

}  // namespace weir::calibrate::stage_lifetimes_test
