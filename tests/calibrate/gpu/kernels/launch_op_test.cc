// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "calibrate/gpu/kernels/kernels.h"
#include "tests/calibrate/gpu/emulator/emulator.h"
#include "tests/calibrate/gpu/kernels/emulated_device.h"
#include "tests/calibrate/gpu/kernels/kernel_check.h"

namespace weir::calibrate::launch_op_test {

StageOp Rows(OpKind kind, int64_t rows, int64_t columns) {
  StageOp op;
  op.kind = kind;
  op.rows = rows;
  op.columns = columns;
  return op;
}

cudaError_t LaunchWithoutData(const StageOp& op, const Launch& launch = {}) {
  const std::vector<const void*> inputs(6);
  const std::vector<void*> outputs(6);
  return LaunchOp(launch, op, inputs.data(), outputs.data());
}

TEST(LaunchOpTest, RefusesWhatNoKernelDoes) {
  EXPECT_EQ(LaunchWithoutData(Rows(OpKind::kGemm, 8, 8)),
            cudaErrorNotSupported);
  EXPECT_EQ(LaunchWithoutData(Rows(OpKind::kGeluForward, 8, 12)),
            cudaErrorNotSupported);
  EXPECT_EQ(LaunchWithoutData(Rows(OpKind::kNormForward, 1, 16392)),
            cudaErrorNotSupported);
  StageOp attention = Rows(OpKind::kAttentionForward, 0, 0);
  attention.heads = attention.kv_heads = 1;
  attention.sequences = attention.sequence_length = 1;
  attention.head_size = 64;
  EXPECT_EQ(LaunchWithoutData(attention), cudaErrorNotSupported);  // unfused
  attention.fused = true;
  attention.head_size = 96;
  EXPECT_EQ(LaunchWithoutData(attention), cudaErrorNotSupported);
  StageOp strided = Rows(OpKind::kGeluForward, 8, 16);
  strided.inputs = {{.buffer = 0, .stride = 32}, {}};
  EXPECT_EQ(LaunchWithoutData(strided), cudaErrorNotSupported);
  Launch fp32;
  fp32.format = ElementFormat::kFp32;
  EXPECT_EQ(LaunchWithoutData(Rows(OpKind::kGeluForward, 8, 16), fp32),
            cudaErrorNotSupported);
}

TEST(LaunchOpTest, SumsOverRowsNeedTheirWorkspace) {
  const StageOp op = Rows(OpKind::kBiasGradient, 64, 64);
  Launch launch;
  const int64_t needed = WorkspaceBytes(launch, op);
  EXPECT_GT(needed, 0);
  EXPECT_EQ(LaunchWithoutData(op, launch), cudaErrorInvalidValue);
  std::vector<float> workspace(needed / 4);
  launch.workspace = workspace.data();
  launch.workspace_bytes = needed - 4;
  EXPECT_EQ(LaunchWithoutData(op, launch), cudaErrorInvalidValue);
  EXPECT_EQ(WorkspaceBytes(launch, Rows(OpKind::kGeluForward, 64, 64)), 0);
}

// Checks wide and long operations on the GPU with the most multiprocessors in
// calibrate/.
TEST(LaunchOpTest, AWorkspaceStaysBelow32MiB) {
  Launch launch;
  launch.num_multiprocessors = 148;
  for (const int64_t columns : {64, 768, 4096, 8192, 16384}) {
    for (const OpKind kind : {OpKind::kBiasGradient, OpKind::kNormBackward}) {
      EXPECT_LE(WorkspaceBytes(launch, Rows(kind, 1 << 20, columns)),
                int64_t{32} << 20)
          << columns;
    }
  }
}

// Returns the bytes that the kernel writes if `seed` determines the order of
// threads and blocks.
std::vector<uint8_t> BitsOf(const KernelCase& test, int output, uint64_t seed) {
  class Recorder : public EmulatedDevice {
   public:
    void* Upload(const std::vector<uint8_t>& bytes) override {
      buffers.push_back(EmulatedDevice::Upload(bytes));
      return buffers.back();
    }
    std::vector<void*> buffers;
  };
  emulator::SetSeed(seed);
  Recorder device;
  EXPECT_TRUE(CheckKernel(test, &device).ok());
  // Outputs follow the inputs; the workspace comes last.
  return *device.Download(device.buffers[test.op.inputs.size() + output]);
}

TEST(LaunchOpTest, GradientsAreTheSameBitsInAnyOrder) {
  for (const KernelCase& test : RowCases()) {
    if (test.name != "norm_backward_101x776_bf16") continue;
    for (int output = 0; output < 3; ++output) {
      EXPECT_EQ(BitsOf(test, output, 1), BitsOf(test, output, 2));
    }
  }
  for (const KernelCase& test : AttentionCases()) {
    if (test.name != "attention_backward_causal_2x33_4_2_64_bf16") continue;
    EXPECT_EQ(BitsOf(test, 0, 1), BitsOf(test, 0, 2));
  }
}

}  // namespace weir::calibrate::launch_op_test
