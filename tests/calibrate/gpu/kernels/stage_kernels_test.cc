// SPDX-License-Identifier: Apache-2.0
// Checks that kernels accept the output of BuildStageProgram: the emulator runs
// each operation of a stage that has a kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/execute/stage/stage_program.h"
#include "tests/calibrate/gpu/kernels/emulated_device.h"
#include "tests/calibrate/gpu/kernels/kernel_check.h"

namespace weir::calibrate::stage_kernels_test {

Model OneLayer(bool llama) {
  Model model;
  Transformer& t = *model.mutable_transformer();
  t.set_num_layers(1);
  t.set_hidden_size(256);
  t.set_num_heads(4);
  t.set_num_kv_heads(llama ? 2 : 4);
  t.set_head_size(64);
  t.set_feed_forward_size(llama ? 344 : 1024);
  t.set_vocabulary_size(520);
  t.set_causal(true);
  t.set_rms_norm(llama);
  t.set_gated_feed_forward(llama);
  if (llama) return model;
  t.set_num_positions(24);
  t.set_attention_bias(true);
  t.set_attention_output_bias(true);
  t.set_feed_forward_bias(true);
  t.set_tied_embeddings(true);
  return model;
}

StageProgram Build(bool llama, float dropout) {
  StageSpec spec;
  spec.work.microbatch_size = 2;
  spec.work.sequence_length = 24;
  spec.work.flash_attention = true;
  spec.last_layer = 3;  // embedding, block, head
  spec.dropout = dropout;
  const auto program = BuildStageProgram(OneLayer(llama), spec);
  EXPECT_TRUE(program.ok()) << program.status();
  return *program;
}

void ExpectAligned(const StageProgram& program,
                   const std::vector<TensorView>& views) {
  for (const TensorView& view : views) {
    if (!view.present()) continue;
    const StageBuffer& buffer = program.buffers[view.buffer];
    EXPECT_EQ(view.offset * BytesOf(buffer.format) % 16, 0) << buffer.name;
  }
}

class StageKernelsTest : public testing::TestWithParam<bool> {};

TEST_P(StageKernelsTest, EveryOperationOfAStageIsRun) {
  const StageProgram program = Build(GetParam(), GetParam() ? 0 : 0.1F);
  int num_ops = 0;
  for (int pass = 0; pass < kNumProgramPasses; ++pass) {
    for (const StageOp& op : program.ops(static_cast<ProgramPass>(pass))) {
      if (!HasKernel(op)) continue;
      ++num_ops;
      ExpectAligned(program, op.inputs);
      ExpectAligned(program, op.outputs);
      EmulatedDevice device;
      const auto errors =
          CheckKernel({op, ElementFormat::kBf16, op.name}, &device);
      ASSERT_TRUE(errors.ok()) << op.name << ": " << errors.status();
      for (const OutputError& error : *errors) {
        EXPECT_LE(error.error, error.bound) << error.output;
      }
    }
  }
  EXPECT_GE(num_ops, 12);
}

INSTANTIATE_TEST_SUITE_P(Models, StageKernelsTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "Llama" : "Gpt";
                         });

}  // namespace weir::calibrate::stage_kernels_test
