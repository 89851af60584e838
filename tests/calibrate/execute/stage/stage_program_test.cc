// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/stage/stage_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/execute/stage/op_shapes.h"
#include "models/model.h"

namespace weir::calibrate::stage_program_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

StageSpec Spec(int first, int last) {
  StageSpec spec;
  spec.work.sequence_length = 512;
  spec.work.vocabulary_multiple = 128;
  spec.first_layer = first;
  spec.last_layer = last;
  return spec;
}

std::string Refusal(const char* model, const StageSpec& spec) {
  const auto program = BuildStageProgram(*models::LoadModel(model), spec);
  EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(program.status().message());
}

TEST(StageProgramTest, RefusalsNameAllThatTheKernelsDoNotDo) {
  StageSpec spec = Spec(0, 2);
  spec.work.recompute = RECOMPUTE_FULL;
  EXPECT_THAT(Refusal("mixtral-8x7b", spec),
              AllOf(HasSubstr("num_experts"), HasSubstr("recompute")));
  EXPECT_THAT(Refusal("bert-base-uncased", Spec(0, 2)),
              AllOf(HasSubstr("post_norm"), HasSubstr("num_token_types"),
                    HasSubstr("embedding_norm")));
  EXPECT_THAT(Refusal("gpt2", Spec(3, 15)),
              HasSubstr("layers are [3, 15), expected a non-empty part of the "
                        "model's [0, 14)"));
  spec = Spec(0, 2);
  spec.work.sequence_length = 8192;
  EXPECT_THAT(Refusal("mistral-7b-v0.1", spec),
              HasSubstr("sliding_window is 4096, expected none, or one no "
                        "shorter than the sequences of 8192"));
  spec = Spec(0, 1);
  spec.work.vocabulary_multiple = 0;
  spec.work.tensor_parallel = 2;
  EXPECT_THAT(Refusal("gpt2", spec),
              HasSubstr("vocabulary_size gives each of 2 GPUs 25128.5"));
}

// Checks the inputs and outputs of stages.
TEST(StageProgramTest, EndsHaveTokensAndLossesTheRestTheStream) {
  const Model model = *models::LoadModel("gpt2");
  const StageProgram first = *BuildStageProgram(model, Spec(0, 5));
  EXPECT_GE(first.tokens, 0);
  EXPECT_EQ(first.input, -1);
  EXPECT_EQ(first.input_gradient, -1);
  EXPECT_EQ(first.targets, -1);
  EXPECT_EQ(first.buffers[first.output].bytes(), 2 * 512 * 768);
  const StageProgram middle = *BuildStageProgram(model, Spec(5, 9));
  EXPECT_EQ(middle.tokens, -1);
  EXPECT_EQ(middle.buffers[middle.input].bytes(), 2 * 512 * 768);
  EXPECT_EQ(middle.buffers[middle.input_gradient].bytes(), 2 * 512 * 768);
  const StageProgram last = *BuildStageProgram(model, Spec(9, 14));
  EXPECT_EQ(last.output, -1);
  EXPECT_EQ(last.output_gradient, -1);
  EXPECT_EQ(last.buffers[last.losses].num_elements, 512);
}

// Checks that every tensor lies inside its buffer with 16-byte alignment, and
// that every operation has the inputs and outputs of its kind.
TEST(StageProgramTest, ViewsAreInsideTheirBuffersAndAligned) {
  for (const char* model : {"gpt2", "llama-2-7b", "mistral-7b-v0.1"}) {
    StageSpec spec = Spec(0, 3);
    spec.dropout = 0.1F;
    const StageProgram program =
        *BuildStageProgram(*models::LoadModel(model), spec);
    const auto check = [&](const StageOp& op, const TensorView& view,
                           const TensorShape& shape) {
      if (!view.present()) return;
      const StageBuffer& buffer = program.buffers[view.buffer];
      const int64_t last = (shape.rows - 1) * StrideOf(view, shape);
      EXPECT_LE(view.offset + last + shape.columns, buffer.num_elements)
          << op.name;
      EXPECT_EQ(view.offset * BytesOf(buffer.format) % 16, 0) << op.name;
      EXPECT_EQ(shape.half, buffer.format == ElementFormat::kBf16) << op.name;
    };
    for (const auto& pass : program.passes) {
      for (const StageOp& op : pass) {
        ASSERT_EQ(op.inputs.size(), NumInputs(op.kind)) << op.name;
        ASSERT_EQ(op.outputs.size(), NumOutputs(op.kind)) << op.name;
        for (size_t i = 0; i < op.inputs.size(); ++i) {
          check(op, op.inputs[i], InputShape(op, i));
        }
        for (size_t i = 0; i < op.outputs.size(); ++i) {
          check(op, op.outputs[i], OutputShape(op, i));
        }
      }
    }
  }
}

// Zero Bubble (Qi et al. 2024): 34 sbh before a block's backward, minus 2 for
// dropout; 32 sbh of inputs and gradients of GEMMs before its weight gradients.
TEST(StageProgramTest, BytesOfAGptBlockAreThePapers) {
  const StageProgram block =
      *BuildStageProgram(*models::LoadModel("gpt2"), Spec(1, 2));
  const double sbh = 512 * 768;
  // Plus the statistics of two norms and one row of attention's for each of 12
  // heads.
  EXPECT_EQ(StashBytes(block), 32 * sbh + 512 * (2 * 8 + 12 * 4));
  EXPECT_EQ(WeightGradientStashBytes(block), 32 * sbh);
}

}  // namespace weir::calibrate::stage_program_test
