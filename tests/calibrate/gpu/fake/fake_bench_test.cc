// SPDX-License-Identifier: Apache-2.0
// Verification, timing and memory counts of the bench on a fake GPU.
#include <gmock/gmock.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "calibrate/gpu/cuda_bench.h"
#include "calibrate/gpu/watchdog.h"
#include "tests/calibrate/execute/reference/small_models.h"
#include "tests/calibrate/gpu/fake/fake.h"

namespace weir::calibrate::fake_bench_test {

constexpr double kBf16 = 1e-2;

class FakeBenchTest : public testing::Test {
 protected:
  void SetUp() override {
    CudaBenchOptions options;
    options.workspace_bytes = 1 << 20;
    options.timeout_seconds = 5;
    options.nvml = FAKE_NVML;
    auto bench = OpenCudaBench(options);
    ASSERT_TRUE(bench.ok()) << bench.status();
    bench_ = *std::move(bench);
  }

  std::shared_ptr<StageProgram> Program(const Model& model, bool fused,
                                        float dropout) {
    StageSpec spec = SmallSpec(fused, dropout);
    spec.format = ElementFormat::kBf16;
    const auto program = BuildStageProgram(model, spec);
    EXPECT_TRUE(program.ok()) << program.status();
    return std::make_shared<StageProgram>(*program);
  }

  std::unique_ptr<PreparedWorkload> Prepare(const Workload& workload) {
    auto prepared = bench_->Prepare(workload);
    EXPECT_TRUE(prepared.ok()) << workload.key << ": " << prepared.status();
    return prepared.ok() ? *std::move(prepared) : nullptr;
  }

  static Workload Of(Workload::Kind kind,
                     std::shared_ptr<const StageProgram> program,
                     ProgramPass pass = ProgramPass::kForward, int op = 0) {
    Workload workload;
    workload.kind = kind;
    workload.program = std::move(program);
    workload.pass = pass;
    workload.op = op;
    workload.bytes = 4096;
    workload.key = "workload";
    if (workload.program != nullptr) {
      workload.key =
          absl::StrCat(Name(pass), " ", workload.program->ops(pass)[op].name);
    }
    return workload;
  }

  // Returns the largest error of all operations.
  double WorstError(const std::shared_ptr<StageProgram>& program) {
    double worst = 0;
    for (int p = 0; p < kNumProgramPasses; ++p) {
      const auto pass = static_cast<ProgramPass>(p);
      for (int op = 0; op < static_cast<int>(program->ops(pass).size()); ++op) {
        const Workload workload = Of(Workload::Kind::kOp, program, pass, op);
        const auto prepared = Prepare(workload);
        if (prepared == nullptr) return HUGE_VAL;
        const auto error = prepared->Verify();
        EXPECT_TRUE(error.ok()) << error.status();
        EXPECT_LE(*error, kBf16) << workload.key;
        worst = std::max(worst, *error);
      }
    }
    return worst;
  }

  double RunSeconds(PreparedWorkload* workload, int num_launches) {
    const auto batch = workload->Run(num_launches);
    EXPECT_TRUE(batch.ok()) << batch.status();
    return batch.ok() ? batch->seconds : HUGE_VAL;
  }

  std::unique_ptr<Bench> bench_;
};

TEST_F(FakeBenchTest, OperationsOfAGptAreRightToTheFormatsRounding) {
  EXPECT_GT(WorstError(Program(SmallGpt(), true, 0.25F)), 1e-4);
}

TEST_F(FakeBenchTest, OperationsOfALlamaAreRight) {
  EXPECT_GT(WorstError(Program(SmallLlama(), true, 0)), 1e-4);
}

TEST_F(FakeBenchTest, UnfusedAttentionIsRight) {
  EXPECT_GT(WorstError(Program(SmallLlama(), false, 0)), 1e-4);
}

TEST_F(FakeBenchTest, WithoutEpiloguesGemmsAreComposed) {
  Gpu().has_gelu_epilogues = false;
  const auto program = Program(SmallGpt(), true, 0);
  EXPECT_GT(WorstError(program), 1e-4);
  int num_composed = 0;
  for (int op = 0;
       op < static_cast<int>(program->ops(ProgramPass::kForward).size());
       ++op) {
    const auto prepared =
        Prepare(Of(Workload::Kind::kOp, program, ProgramPass::kForward, op));
    num_composed += prepared->algorithm().find("GELU by its own kernel") !=
                    std::string::npos;
  }
  EXPECT_EQ(num_composed, 2);  // one per block
}

TEST_F(FakeBenchTest, AKernelThatIsWrongIsFound) {
  const auto program = Program(SmallGpt(), true, 0);
  const auto& ops = program->ops(ProgramPass::kForward);
  for (int op = 0; op < static_cast<int>(ops.size()); ++op) {
    if (ops[op].kind != OpKind::kNormForward) continue;
    const auto prepared =
        Prepare(Of(Workload::Kind::kOp, program, ProgramPass::kForward, op));
    Gpu().kernels_are_off_by = 1.1;
    const auto error = prepared->Verify();
    Gpu().kernels_are_off_by = 1;
    ASSERT_TRUE(error.ok());
    EXPECT_NEAR(*error, 0.1, 0.02);
    return;
  }
  FAIL() << "no norm";
}

TEST_F(FakeBenchTest, APassThatYieldsNaNIsFound) {
  const auto program = Program(SmallGpt(), true, 0);
  for (const ProgramPass pass :
       {ProgramPass::kForward, ProgramPass::kBackwardInput,
        ProgramPass::kBackwardWeight, ProgramPass::kOptimizer}) {
    const auto prepared = Prepare(Of(Workload::Kind::kPass, program, pass));
    ASSERT_NE(prepared, nullptr);
    const auto clean = prepared->Verify();
    ASSERT_TRUE(clean.ok()) << clean.status();
    EXPECT_EQ(*clean, 0);
    Gpu().kernels_are_off_by = std::nan("");
    const auto error = prepared->Verify();
    Gpu().kernels_are_off_by = 1;
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_TRUE(std::isinf(*error)) << Name(pass);
  }
}

TEST_F(FakeBenchTest, TheFastestAlgorithmThatRunsIsTaken) {
  const auto program = Program(SmallGpt(), true, 0);
  const auto& ops = program->ops(ProgramPass::kForward);
  for (int op = 0; op < static_cast<int>(ops.size()); ++op) {
    if (ops[op].kind != OpKind::kGemm) continue;
    const auto prepared =
        Prepare(Of(Workload::Kind::kOp, program, ProgramPass::kForward, op));
    // The first algorithm does not run; the third is faster than the second.
    EXPECT_THAT(prepared->algorithm(), testing::StartsWith("cuBLASLt 2 "));
    EXPECT_NEAR(RunSeconds(prepared.get(), 100), 2e-5, 1e-9);
    return;
  }
}

TEST_F(FakeBenchTest, APassTakesItsOperations) {
  const auto program = Program(SmallGpt(), true, 0);
  for (const ProgramPass pass :
       {ProgramPass::kForward, ProgramPass::kBackwardInput,
        ProgramPass::kBackwardWeight, ProgramPass::kOptimizer}) {
    double expected = 0;
    for (const StageOp& op : program->ops(pass)) {
      expected += op.kind == OpKind::kGemm ? 2e-5 : 1e-5;
    }
    const auto prepared = Prepare(Of(Workload::Kind::kPass, program, pass));
    ASSERT_NE(prepared, nullptr);
    const auto error = prepared->Verify();
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_EQ(*error, 0);
    EXPECT_NEAR(RunSeconds(prepared.get(), 3) / expected, 1, 1e-5)
        << Name(pass);
  }
}

TEST_F(FakeBenchTest, TransfersAndEmptyKernels) {
  const auto empty = Prepare(Of(Workload::Kind::kEmptyKernel, nullptr));
  EXPECT_NEAR(RunSeconds(empty.get(), 1000), 1e-5, 1e-9);
  for (const auto kind : {Workload::Kind::kCopy, Workload::Kind::kSelfSend}) {
    const auto copy = Prepare(Of(kind, nullptr));
    EXPECT_NEAR(RunSeconds(copy.get(), 1000), 2e-6 + 4096 / 1e12, 1e-9);
  }
  EXPECT_EQ(bench_
                ->Prepare([] {
                  Workload huge = Of(Workload::Kind::kCopy, nullptr);
                  huge.bytes = 1e12 / 16 * 16;
                  return huge;
                }())
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(FakeBenchTest, WhatRunsAsLoadRunsThroughout) {
  const auto program = Program(SmallLlama(), true, 0);
  for (const auto kind :
       {Workload::Kind::kOpWithCopies, Workload::Kind::kOpWithCollectives}) {
    const auto prepared = Prepare(Of(kind, program));
    ASSERT_NE(prepared, nullptr);
    EXPECT_NEAR(RunSeconds(prepared.get(), 500), 1e-5, 1e-8);
  }
}

// Returns true if work is in flight.
bool IsBusy() {
  for (const cudaStream_t stream : Gpu().streams) {
    if (stream->busy_until > Gpu().now) return true;
  }
  return false;
}

TEST_F(FakeBenchTest, ABatchIsQueuedBehindTheOneThatIsMeasured) {
  const auto empty = Prepare(Of(Workload::Kind::kEmptyKernel, nullptr));
  // 5 ms, longer than the host's polls.
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(RunSeconds(empty.get(), 500), 1e-5, 1e-9);
    EXPECT_TRUE(IsBusy());
  }
  // Another number of launches needs other graphs.
  EXPECT_NEAR(RunSeconds(empty.get(), 700), 1e-5, 1e-9);
  EXPECT_TRUE(IsBusy());
  // The load of other streams lasts for one batch only.
  const auto program = Program(SmallLlama(), true, 0);
  const auto overlapped = Prepare(Of(Workload::Kind::kOpWithCopies, program));
  EXPECT_NEAR(RunSeconds(overlapped.get(), 500), 1e-5, 1e-8);
  while (IsBusy()) Gpu().now += 1e-3;
}

TEST_F(FakeBenchTest, APassLaunchedOneByOneTakesItsOperationsToo) {
  const auto program = Program(SmallGpt(), true, 0);
  Workload workload = Of(Workload::Kind::kPass, program);
  workload.by_stream = true;
  double expected = 0;
  for (const StageOp& op : program->ops(workload.pass)) {
    expected += op.kind == OpKind::kGemm ? 2e-5 : 1e-5;
  }
  const auto prepared = Prepare(workload);
  ASSERT_NE(prepared, nullptr);
  const int64_t before = Gpu().num_kernels;
  EXPECT_NEAR(RunSeconds(prepared.get(), 3) / expected, 1, 1e-4);
  // Nothing is queued behind the last launch, as in a serial replay.
  EXPECT_FALSE(IsBusy());
  const int64_t each = (Gpu().num_kernels - before) / 3;
  EXPECT_NEAR(RunSeconds(prepared.get(), 1) / expected, 1, 1e-4);
  EXPECT_EQ(Gpu().num_kernels - before, 4 * each);
}

TEST_F(FakeBenchTest, StateComesFromNvml) {
  const auto empty = Prepare(Of(Workload::Kind::kEmptyKernel, nullptr));
  const auto batch = empty->Run(10);
  ASSERT_TRUE(batch.ok());
  EXPECT_DOUBLE_EQ(batch->state.watts, 698.5);
  EXPECT_TRUE(batch->state.power_capped);
  EXPECT_GT(batch->host_launch_seconds, 0);
  EXPECT_EQ(bench_->provenance().software().driver(), "580.65.06");
  EXPECT_EQ(bench_->provenance().gpu_name(), "Fake GPU");
  EXPECT_EQ(bench_->half_format(), ElementFormat::kBf16);
}

TEST_F(FakeBenchTest, MemoryStepsAreWhatEachTook) {
  const auto steps = bench_->MeasureMemorySteps();
  ASSERT_TRUE(steps.ok()) << steps.status();
  // NVML's fake count does not change, so this is all memory in use.
  EXPECT_EQ(steps->context_bytes, 400 << 20);
  EXPECT_EQ(steps->library_bytes, 5 << 20);
  EXPECT_EQ(steps->workspace_bytes, 1 << 20);
  EXPECT_EQ(steps->communicator_bytes, 30 << 20);
  EXPECT_EQ(steps->communication_bytes, 10 << 20);
  const auto again = bench_->MeasureMemorySteps();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->communicator_bytes, 30 << 20);
}

TEST_F(FakeBenchTest, AStagesMarksAreItsPredictionRoundedUp) {
  for (const auto& program :
       {Program(SmallGpt(), true, 0.25F), Program(SmallLlama(), false, 0)}) {
    for (const int num_microbatches : {1, 4}) {
      const auto memory =
          bench_->MeasureStageMemory(*program, num_microbatches);
      ASSERT_TRUE(memory.ok()) << memory.status();
      EXPECT_EQ(memory->used_high_bytes(), memory->rounded_bytes());
      EXPECT_GT(memory->rounded_bytes(), memory->predicted_bytes());
      EXPECT_GE(memory->reserved_high_bytes(), memory->used_high_bytes());
    }
  }
}

TEST_F(FakeBenchTest, AHangEndsWithTheNameOfTheWorkloadAndNothingWaits) {
  bench_.reset();
  CudaBenchOptions options;
  options.timeout_seconds = 2;
  auto bench = OpenCudaBench(options);
  ASSERT_TRUE(bench.ok()) << bench.status();
  auto empty = (*bench)->Prepare(Of(Workload::Kind::kEmptyKernel, nullptr));
  ASSERT_TRUE(empty.ok());
  Gpu().hangs = true;
  const auto batch = (*empty)->Run(10);
  EXPECT_EQ(batch.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(batch.status().message(),
            "workload: the GPU did not finish within 2 s");
  EXPECT_TRUE(DeviceIsHung());
  const int destroyed = Gpu().num_destroyed;
  empty->reset();
  bench->reset();
  EXPECT_EQ(Gpu().num_destroyed, destroyed);
}

TEST_F(FakeBenchTest, ClosingGivesAllMemoryBack) {
  const auto program = Program(SmallGpt(), true, 0);
  Prepare(Of(Workload::Kind::kPass, program)).reset();
  bench_.reset();
  EXPECT_TRUE(Gpu().allocations.empty());
}

}  // namespace weir::calibrate::fake_bench_test
