// SPDX-License-Identifier: Apache-2.0
// The bench on one partition of a fake GPU while other partitions are busy.
#include <gmock/gmock.h>

#include "calibrate/gpu/cuda_bench.h"
#include "calibrate/gpu/watchdog.h"
#include "tests/calibrate/execute/reference/small_models.h"
#include "tests/calibrate/gpu/fake/fake.h"

namespace weir::calibrate::fake_loaded_test {

class LoadedTest : public testing::Test {
 protected:
  // Kernels are slow, so the load has few rounds, which the host computes.
  void SetUp() override {
    Gpu() = FakeState();
    Gpu().kernel_seconds = 1e-3;
  }
  ~LoadedTest() override {
    if (DeviceIsHung()) return;
    bench_.reset();
    EXPECT_THAT(Gpu().faults, testing::IsEmpty());
    EXPECT_TRUE(Gpu().parts.empty());
    EXPECT_TRUE(Gpu().streams.empty());
    EXPECT_EQ(Gpu().num_streams_without_part, 0);
    EXPECT_TRUE(Gpu().allocations.empty());
  }

  void Open(int num_partitions, double timeout_seconds = 5) {
    CudaBenchOptions options;
    options.workspace_bytes = 1 << 20;
    options.timeout_seconds = timeout_seconds;
    options.nvml = "libnone.so";
    options.num_partitions = num_partitions;
    auto bench = OpenCudaBench(options);
    ASSERT_TRUE(bench.ok()) << bench.status();
    bench_ = *std::move(bench);
  }

  static Workload Pass(ProgramPass pass, int active) {
    StageSpec spec = SmallSpec(true, 0.25F);
    spec.format = ElementFormat::kBf16;
    const auto program = BuildStageProgram(SmallGpt(), spec);
    EXPECT_TRUE(program.ok()) << program.status();
    Workload workload;
    workload.kind = Workload::Kind::kPass;
    workload.key = "pass";
    workload.program = std::make_shared<StageProgram>(*program);
    workload.pass = pass;
    workload.active_partitions = active;
    return workload;
  }

  double Seconds(ProgramPass pass, int active, int num_launches = 3) {
    auto prepared = bench_->Prepare(Pass(pass, active));
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    if (!prepared.ok()) return 0;
    const auto error = (*prepared)->Verify();
    EXPECT_TRUE(error.ok() && *error == 0) << error.status();
    const auto batch = (*prepared)->Run(num_launches);
    EXPECT_TRUE(batch.ok()) << batch.status();
    // Alone, the next batch is queued until the workload is destroyed.
    if (active == 1) prepared->reset();
    ExpectAllEnded();
    return batch.ok() ? batch->seconds : 0;
  }

  static void ExpectAllEnded() {
    for (const cudaStream_t stream : Gpu().streams) {
      EXPECT_LE(stream->busy_until, Gpu().now);
    }
  }

  std::unique_ptr<Bench> bench_;
};

TEST_F(LoadedTest, OthersSlowAPassByHowManyTheyAre) {
  Open(4);
  Gpu().slowdown_per_busy_part = 0.25;
  for (const ProgramPass pass :
       {ProgramPass::kForward, ProgramPass::kBackwardInput,
        ProgramPass::kBackwardWeight, ProgramPass::kOptimizer}) {
    const double alone = Seconds(pass, 1);
    ASSERT_GT(alone, 0);
    for (const int active : {2, 3, 4}) {
      EXPECT_NEAR(Seconds(pass, active) / alone, 1 + 0.25 * (active - 1), 1e-6)
          << Name(pass) << ", " << active << " at work";
    }
  }
}

TEST_F(LoadedTest, AloneOthersDoNotWork) {
  Open(4);
  const double quiet = Seconds(ProgramPass::kForward, 1);
  Gpu().slowdown_per_busy_part = 0.25;
  EXPECT_NEAR(Seconds(ProgramPass::kForward, 1) / quiet, 1, 1e-6);
}

TEST_F(LoadedTest, ALoadThatEndsTooEarlyIsMadeLonger) {
  Open(2);
  const double alone = Seconds(ProgramPass::kForward, 1);
  Gpu().slowdown_per_busy_part = 9;
  EXPECT_NEAR(Seconds(ProgramPass::kForward, 2, 10) / alone, 10, 1e-5);
}

TEST_F(LoadedTest, ALoadThatAlwaysEndsTooEarlyIsAnError) {
  // The waits take real time: 5 s where sleeps are short.
  Open(2, /*timeout_seconds=*/60);
  Gpu().slowdown_per_busy_part = 1e4;
  const auto prepared = bench_->Prepare(Pass(ProgramPass::kForward, 2));
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(
      (*prepared)->Run(4).status(),
      absl::InternalError(
          "pass: the background load ended before the measured work, 6 times"));
  ExpectAllEnded();
}

TEST_F(LoadedTest, TheBenchIsOfThePart) {
  Open(4);
  EXPECT_EQ(bench_->num_partitions(), 4);
  EXPECT_EQ(bench_->provenance().num_multiprocessors(), 132);
  EXPECT_EQ(bench_->part_multiprocessors(), 32);
  EXPECT_THAT(bench_->provenance().remarks(),
              testing::Contains("one of 4 partitions of a GPU with 132 "
                                "multiprocessors, 4 of them for copies"));
  Gpu().gemms_fill.clear();
  EXPECT_GT(Seconds(ProgramPass::kForward, 2), 0);
  EXPECT_THAT(Gpu().gemms_fill, testing::ElementsAre(32));
  // All queued work was on partitions.
  for (const cudaStream_t stream : Gpu().streams) {
    EXPECT_NE(stream->part, nullptr);
  }
  for (const auto kind :
       {Workload::Kind::kSelfSend, Workload::Kind::kOpWithCollectives}) {
    Workload workload = Pass(ProgramPass::kForward, 1);
    workload.kind = kind;
    workload.bytes = 4096;
    EXPECT_EQ(bench_->Prepare(workload).status().code(),
              absl::StatusCode::kUnimplemented);
  }
  const auto steps = bench_->MeasureMemorySteps();
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ(steps->communicator_bytes, 0);
}

TEST_F(LoadedTest, MorePartsThanThereAreAreRefused) {
  Open(2);
  EXPECT_EQ(
      bench_->Prepare(Pass(ProgramPass::kForward, 3)).status(),
      absl::InvalidArgumentError("pass: needs 3 GPU partitions, found 2"));
  Open(0);
  EXPECT_EQ(bench_->num_partitions(), 1);
  EXPECT_EQ(bench_->Prepare(Pass(ProgramPass::kForward, 2)).status().code(),
            absl::StatusCode::kInvalidArgument);
  CudaBenchOptions options;
  options.num_partitions = 17;
  EXPECT_EQ(OpenCudaBench(options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(LoadedTest, AHangEndsWithTheNameOfThePart) {
  Open(2, 2);
  const auto prepared = bench_->Prepare(Pass(ProgramPass::kForward, 2));
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  Gpu().hangs = true;
  EXPECT_EQ(
      (*prepared)->Run(10).status(),
      absl::DeadlineExceededError("pass: the GPU did not finish within 2 s"));
  EXPECT_TRUE(DeviceIsHung());
}

}  // namespace weir::calibrate::fake_loaded_test
