// SPDX-License-Identifier: Apache-2.0
// Round trip: model parameters -> simulated measurements -> fitted model
// parameters.
#include "calibrate/measure/assemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "calibrate/measure/journal.h"
#include "calibrate/measure/measure.h"
#include "calibrate/measure/report.h"
#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/partition_slowdown.h"
#include "models/layer_work.h"
#include "models/model.h"
#include "tests/calibrate/measure/fake_bench.h"

namespace weir::calibrate::assemble_test {

using testing::HasSubstr;

void Set(double value, Figure* figure) {
  figure->set_value(value);
  figure->set_kind(Figure::MEASURED);
  figure->set_source("planted");
}

// Returns an H200 with made-up parameters.
DeviceProfile Planted() {
  DeviceProfile truth = *LoadDeviceProfile("h200-sxm");
  Set(0.9, truth.mutable_memory_efficiency());
  Set(0.72, truth.mutable_norm_efficiency());
  Set(0.81, truth.mutable_elementwise_efficiency());
  Set(2.1e-6, truth.mutable_kernel_seconds());
  Set(0.58, truth.mutable_attention_efficiency());
  Set(0.44, truth.mutable_attention_backward_efficiency());
  Set(260, truth.mutable_attention_ramp_keys());
  truth.clear_attention_head_sizes();  // the model has one size
  Set(0.8, truth.mutable_gemm()->mutable_matrix_rate());
  Set(3.3e-6, truth.mutable_gemm()->mutable_launch_seconds());
  Set(0.3, truth.mutable_gemm()->mutable_wave_quantization());
  Set(0.93, truth.mutable_gemm()->mutable_memory_rate());
  Set(0.93, truth.mutable_gemm()->mutable_sustained_rate());
  Set(6e-7, truth.mutable_kernel_gap_seconds());
  Set(1.13, truth.mutable_copy_slowdown());
  Set(1.07, truth.mutable_collective_slowdown());
  return truth;
}

struct Loop {
  MeasuringPlan plan;
  Calibration journal;
  DeviceProfile start, profile;
};

Loop RunLoop(FakeBenchOptions options, const std::string& model,
             DeviceProfile::Purpose purpose = DeviceProfile::REPLAYS) {
  Loop loop;
  PlanOptions plan_options;
  plan_options.purpose = purpose;
  plan_options.microbatch_sizes = {1, 4};
  plan_options.num_partitions = options.num_partitions;
  loop.plan = *MakePlan(*models::LoadModel(model), plan_options);
  loop.start = *LoadDeviceProfile("h200-sxm");
  FakeBench bench(std::move(options));
  *loop.journal.mutable_provenance() = bench.provenance();
  loop.journal.mutable_provenance()->set_weir_version("0.1.0");
  loop.journal.mutable_provenance()->set_measured_on("2026-01-31");
  if (bench.num_partitions() > 1) {
    loop.journal.set_num_partitions(bench.num_partitions());
    loop.journal.set_part_multiprocessors(bench.part_multiprocessors());
  }
  const absl::Status measured =
      Measure(loop.plan, CalibrationOptions(), {}, &bench, &loop.journal);
  EXPECT_TRUE(measured.ok()) << measured;
  auto profile = AssembleProfile(loop.plan, loop.journal, loop.start);
  EXPECT_TRUE(profile.ok()) << profile.status();
  loop.profile = *std::move(profile);
  EXPECT_TRUE(ValidateDeviceProfile("assembled", loop.profile).ok());
  return loop;
}

FakeBenchOptions Quiet() {
  FakeBenchOptions options = FakeH200();
  options.truth = Planted();
  options.launch_gap_seconds = 4e-7;
  return options;
}

void ExpectFigures(const DeviceProfile& found, double tolerance) {
  const DeviceProfile truth = Planted();
  const auto near = [&](const char* what, const Figure& a, const Figure& b,
                        double slack = 1) {
    EXPECT_NEAR(a.value() / b.value(), 1, slack * tolerance) << what;
    EXPECT_THAT(a.source(), HasSubstr("NVIDIA H200, 2026-01-31")) << what;
  };
  near("memory", found.memory_efficiency(), truth.memory_efficiency());
  near("norm", found.norm_efficiency(), truth.norm_efficiency());
  near("elementwise", found.elementwise_efficiency(),
       truth.elementwise_efficiency());
  near("kernel", found.kernel_seconds(), truth.kernel_seconds(), 3);
  near("attention", found.attention_efficiency(), truth.attention_efficiency());
  near("attention backward", found.attention_backward_efficiency(),
       truth.attention_backward_efficiency());
  EXPECT_TRUE(found.attention_head_sizes().empty());
  near("ramp", found.attention_ramp_keys(), truth.attention_ramp_keys(), 3);
  near("copies", found.copy_slowdown(), truth.copy_slowdown());
  near("collectives", found.collective_slowdown(), truth.collective_slowdown());
}

TEST(AssembleTest, WithoutNoiseTheFiguresComeBack) {
  const Loop loop = RunLoop(Quiet(), "gpt-2.2b");
  ExpectFigures(loop.profile, 1e-4);
  // That of graphs, and what it takes to launch an operation.
  EXPECT_NEAR(loop.profile.kernel_gap_seconds().value() / 1e-6, 1, 1e-6);
  // Fitted to one block, checked against whole stages.
  EXPECT_THAT(loop.profile.kernel_gap_seconds().source(),
              HasSubstr("other passes 0.00 %"));
  // Parameters of the GEMM model that are masked by others need not be
  // recovered one by one, but their predictions must be.
  EXPECT_LT(loop.profile.gemm_residual().value(), 2e-3);
  const GemmModel& gemm = loop.profile.gemm();
  EXPECT_NEAR(gemm.matrix_rate().value(), 0.8, 0.008);
  EXPECT_NEAR(gemm.launch_seconds().value() / 3.3e-6, 1, 0.02);
  EXPECT_NEAR(gemm.memory_rate().value(), 0.93, 0.02);
  EXPECT_THAT(gemm.matrix_rate().source(), HasSubstr("NVIDIA H200"));
  ASSERT_EQ(loop.profile.links_size(), 1);
  const LinkClass& self = loop.profile.links(0);
  EXPECT_EQ(self.distance(), LinkClass::SAME_GPU);
  ASSERT_EQ(self.pieces_size(), 1);
  EXPECT_NEAR(self.pieces(0).latency_seconds() / 8e-6, 1, 1e-6);
  EXPECT_NEAR(self.figure().value() / (4.8e12 * 0.9 / 2), 1, 1e-6);
  // The fake GPU is faster while it is cool.
  EXPECT_NEAR(gemm.sustained_rate().value(), 0.93, 1e-9);
  EXPECT_EQ(gemm.sustained_rate().kind(), Figure::MEASURED);
  EXPECT_THAT(gemm.sustained_rate().source(),
              HasSubstr("sustained gemm m 8192 n 8192 k 8192"));
}

TEST(AssembleTest, AProfileForFrameworksKeepsTheirAttention) {
  const Loop loop = RunLoop(Quiet(), "gpt2", DeviceProfile::FRAMEWORKS);
  EXPECT_EQ(loop.profile.purpose(), DeviceProfile::FRAMEWORKS);
  for (const auto& figure : {&DeviceProfile::attention_efficiency,
                             &DeviceProfile::attention_backward_efficiency,
                             &DeviceProfile::attention_ramp_keys}) {
    EXPECT_EQ((loop.profile.*figure)().SerializeAsString(),
              (loop.start.*figure)().SerializeAsString());
  }
  for (const MeasuredKernel& kernel : loop.profile.kernels()) {
    EXPECT_NE(kernel.kind(), MeasuredKernel::ATTENTION);
  }
  // Passes follow each other from graphs.
  EXPECT_NEAR(loop.profile.kernel_gap_seconds().value() / 6e-7, 1, 1e-6);
  for (const MeasuredStage& stage : loop.profile.stages()) {
    EXPECT_FALSE(stage.has_stream_seconds());
  }
  EXPECT_THAT(loop.profile.provenance().remarks(),
              testing::Contains(HasSubstr("predicts frameworks: attention "
                                          "keeps the parameters")));
  // What was measured is reported all the same.
  const std::string csv = PrintReportCsv(
      MakeReport(loop.plan, loop.journal, loop.start, loop.profile));
  EXPECT_THAT(csv, HasSubstr("\nattention,attention_forward"));
}

TEST(AssembleTest, AProfileForReplaysHasPassesLaunchedOneByOne) {
  const Loop loop = RunLoop(Quiet(), "gpt2");
  EXPECT_EQ(loop.profile.purpose(), DeviceProfile::REPLAYS);
  EXPECT_EQ(loop.profile.gpu_names_size(), 0);
  int num_attention = 0;
  for (const MeasuredKernel& kernel : loop.profile.kernels()) {
    num_attention += kernel.kind() == MeasuredKernel::ATTENTION;
  }
  EXPECT_GT(num_attention, 0);
  for (const MeasuredStage& stage : loop.profile.stages()) {
    ASSERT_TRUE(stage.has_stream_seconds());
    EXPECT_NEAR(PassSeconds(stage) - stage.seconds().p50(),
                4e-7 * stage.num_kernels(), 1e-12);
  }
  EXPECT_THAT(loop.profile.kernel_gap_seconds().source(),
              HasSubstr("passes of stages, launched one by one, minus"));
  EXPECT_THAT(loop.profile.provenance().remarks(),
              testing::Contains(HasSubstr("predicts replays")));
}

TEST(AssembleTest, SamplesAtHigherClocksThanSustainedOnesAreCorrected) {
  Loop loop = RunLoop(Quiet(), "gpt2");
  // After 20 s the GEMM takes 5 % longer than among the samples.
  SustainedResult* sustained = loop.journal.mutable_sustained();
  sustained->set_last_seconds(1.05 * sustained->last_seconds());
  const auto profile = AssembleProfile(loop.plan, loop.journal, loop.start);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_NEAR(profile->gemm().sustained_rate().value(), 0.93 / 1.05, 1e-9);
  // The burst rate stays.
  EXPECT_NEAR(profile->gemm().matrix_rate().value(),
              loop.profile.gemm().matrix_rate().value(), 1e-9);
  EXPECT_THAT(profile->provenance().remarks(),
              testing::Contains(HasSubstr("clocks that are 5.0 % above")));
}

TEST(AssembleTest, WithNoiseTheyComeBackAsCloselyAsItLets) {
  FakeBenchOptions options = Quiet();
  options.noise = 0.02;
  options.run_to_run = 0.01;
  options.outlier_part = 0.02;
  options.clock_ramp = 0.2;
  const Loop loop = RunLoop(options, "gpt-2.2b");
  ExpectFigures(loop.profile, 0.02);
  EXPECT_LT(loop.profile.gemm_residual().value(), 0.03);
  EXPECT_LT(loop.profile.memory_residual().value(), 0.03);
}

// The validation's bound for a whole stage, priced from its operations, is 3 %.
TEST(AssembleTest, StagesFollowFromTheirOperationsAndGaps) {
  const Loop loop = RunLoop(Quiet(), "llama-2-7b");
  ASSERT_FALSE(loop.profile.stages().empty());
  for (const MeasuredStage& stage : loop.profile.stages()) {
    EXPECT_NEAR(
        (stage.sum_of_kernels_seconds() +
         stage.num_kernels() * loop.profile.kernel_gap_seconds().value()) /
            PassSeconds(stage),
        1, 1e-6);
  }
  for (const MeasuredMemory& memory : loop.profile.memory()) {
    EXPECT_EQ(memory.predicted_bytes(), memory.used_high_bytes());
    EXPECT_GE(memory.reserved_high_bytes(), memory.used_high_bytes());
  }
}

TEST(AssembleTest, KernelsAreWhatModelsCountAndPriceThemselves) {
  const Loop loop = RunLoop(Quiet(), "gpt2");
  ASSERT_FALSE(loop.profile.kernels().empty());
  const double peak = *PeakFlops(loop.profile, "bf16");
  int gemms = 0, attention = 0, memory = 0;
  for (const MeasuredKernel& measured : loop.profile.kernels()) {
    gemms += measured.kind() == MeasuredKernel::GEMM;
    attention += measured.kind() == MeasuredKernel::ATTENTION;
    memory += measured.kind() == MeasuredKernel::MEMORY;
    EXPECT_EQ(measured.algorithm(), "fake");
    EXPECT_GT(measured.multiprocessor_hertz(), 1e9);
    models::Kernel kernel;
    if (measured.kind() != MeasuredKernel::GEMM) continue;
    kernel.kind = models::Kernel::Kind::kGemm;
    kernel.batch = measured.batch();
    kernel.m = measured.m();
    kernel.n = measured.n();
    kernel.k = measured.k();
    kernel.bytes = measured.bytes();
    EXPECT_NEAR(
        KernelSeconds(loop.profile, peak, kernel) / measured.seconds().p50(), 1,
        0.02);
  }
  EXPECT_GT(gemms, 70);
  EXPECT_GT(attention, 4);
  EXPECT_GT(memory, 10);
}

TEST(AssembleTest, WhatWasNotMeasuredStaysAndIsRemarked) {
  FakeBenchOptions options = Quiet();
  options.too_large = {"attention"};
  options.wrong = {"norm"};
  options.episodes = {{10, 60, 1, true, false}};
  const Loop loop = RunLoop(options, "gpt2");
  EXPECT_EQ(loop.profile.attention_efficiency().SerializeAsString(),
            loop.start.attention_efficiency().SerializeAsString());
  EXPECT_EQ(loop.profile.norm_efficiency().SerializeAsString(),
            loop.start.norm_efficiency().SerializeAsString());
  std::string remarks;
  for (const auto& remark : loop.profile.provenance().remarks()) {
    remarks += remark + "\n";
  }
  EXPECT_THAT(remarks, HasSubstr("at the power limit"));
  EXPECT_THAT(remarks, HasSubstr("left out"));
  const std::string report = PrintReport(
      MakeReport(loop.plan, loop.journal, loop.start, loop.profile));
  EXPECT_THAT(report, HasSubstr("refused: norm_forward"));
  EXPECT_THAT(report, HasSubstr("skipped: attention_forward"));
  EXPECT_THAT(report, HasSubstr("memory_efficiency"));
}

TEST(AssembleTest, MemoryAndProvenanceAreTheDrivers) {
  const Loop loop = RunLoop(Quiet(), "gpt2");
  const DeviceProfile& profile = loop.profile;
  EXPECT_EQ(profile.context_bytes().value(), 5.2e8);
  EXPECT_EQ(profile.library_bytes().value(), 1.1e8);
  EXPECT_EQ(profile.workspace_bytes().value(), 32 << 20);
  EXPECT_EQ(profile.reserved_bytes().value(), 5.2e8 + 1.1e8 + (32 << 20));
  EXPECT_EQ(profile.memory_bytes().value(), 150109106995.0);
  EXPECT_EQ(profile.provenance().gpu_name(), "NVIDIA H200");
  EXPECT_EQ(profile.provenance().software().cublas(), "13.1.0");
  EXPECT_EQ(profile.coverage().gemm_m().low(), 16);
  EXPECT_EQ(profile.coverage().gemm_n().high(), 50304);
}

// Checks that each pass has the planted factors, at the measured numbers of
// active partitions.
void ExpectShare(const DeviceProfile& found, const DeviceProfile& truth,
                 const std::vector<int>& active, double tolerance) {
  const PartitionSlowdown& share = found.partition_slowdown();
  EXPECT_EQ(share.num_partitions(),
            truth.partition_slowdown().num_partitions());
  EXPECT_EQ(share.multiprocessors(),
            truth.partition_slowdown().multiprocessors());
  ASSERT_EQ(share.slowdowns_size(), int(4 * active.size()));
  for (int i = 0; i < share.slowdowns_size(); ++i) {
    const PartitionSlowdown::Slowdown& slowdown = share.slowdowns(i);
    EXPECT_EQ(slowdown.active(), active[i % active.size()]);
    EXPECT_NEAR(slowdown.factor() /
                    SharingCurve(truth.partition_slowdown(),
                                 slowdown.pass())[slowdown.active() - 1],
                1, tolerance)
        << slowdown.pass() << " " << slowdown.active();
  }
}

TEST(AssembleTest, FactorsOfAPartOfAGpuComeBack) {
  const FakeBenchOptions part = FakePart(Quiet(), 4);
  const Loop loop = RunLoop(part, "gpt-2.2b");
  const DeviceProfile& profile = loop.profile;
  ExpectShare(profile, part.truth, {2, 4}, 1e-9);
  EXPECT_EQ(profile.name(), "H200-SXM5-141GB 1/4");
  EXPECT_EQ(profile.num_multiprocessors().value(), 32);
  EXPECT_EQ(profile.memory_bytes().value(), 150109106995.0 / 4);
  EXPECT_EQ(profile.context_bytes().value(), 5.2e8 / 4);
  EXPECT_EQ(profile.workspace_bytes().value(), 32 << 20);
  EXPECT_EQ(profile.provenance().num_multiprocessors(), 132);
  // Rates scale with the multiprocessors; fitted parameters are those of the
  // partition.
  EXPECT_NEAR(*PeakFlops(profile, "bf16") / *PeakFlops(loop.start, "bf16"),
              32.0 / 132, 1e-12);
  EXPECT_NEAR(profile.memory_efficiency().value(), 0.4, 1e-4);
  EXPECT_THAT(profile.memory_efficiency().source(),
              HasSubstr("one of 4 partitions of NVIDIA H200"));
  EXPECT_LT(profile.gemm_residual().value(), 5e-3);
  for (const MeasuredStage& stage : profile.stages()) {
    EXPECT_NEAR((stage.sum_of_kernels_seconds() +
                 stage.num_kernels() * profile.kernel_gap_seconds().value()) /
                    PassSeconds(stage),
                1, 1e-6);
  }
}

TEST(AssembleTest, FactorsComeBackThroughNoise) {
  FakeBenchOptions part = FakePart(Quiet(), 8);
  part.noise = 0.02;
  part.run_to_run = 0.01;
  part.outlier_part = 0.02;
  part.clock_ramp = 0.2;
  ExpectShare(RunLoop(part, "gpt2").profile, part.truth, {2, 4, 8}, 0.015);
}

TEST(AssembleTest, PassesOverlappingOtherPartsAreReported) {
  const Loop loop = RunLoop(FakePart(Quiet(), 2), "gpt2");
  const auto rows =
      MakeReport(loop.plan, loop.journal, loop.start, loop.profile);
  int num_rows = 0;
  for (const ReportRow& row : rows) {
    EXPECT_FALSE(row.kind == "other" &&
                 absl::StrContains(row.name, "partitions"));
    if (row.kind != "share") continue;
    ++num_rows;
    if (!absl::StartsWith(row.name, "pass optimizer of gpt2 1 block")) continue;
    EXPECT_NEAR(row.measured / row.expected, 1.06, 1e-9);
    EXPECT_EQ(row.note, "slowdown 1.060 of optimizer with 2 busy partitions");
  }
  EXPECT_EQ(num_rows, int(loop.plan.passes.size()));
  EXPECT_THAT(PrintReport(rows),
              HasSubstr("pass with other partitions busy, s"));
}

TEST(AssembleTest, APartOfAGpuIsNoStart) {
  const Loop loop = RunLoop(FakePart(Quiet(), 2), "gpt2");
  const auto again = AssembleProfile(loop.plan, loop.journal, loop.profile);
  EXPECT_TRUE(absl::IsInvalidArgument(again.status()));
  EXPECT_THAT(
      std::string(again.status().message()),
      HasSubstr("H200-SXM5-141GB 1/2 describes one of 2 partitions of a GPU"));
}

TEST(AssembleTest, SameJournalSameBytes) {
  const Loop loop = RunLoop(Quiet(), "gpt2");
  const auto again = AssembleProfile(loop.plan, loop.journal, loop.start);
  EXPECT_EQ(again->SerializeAsString(), loop.profile.SerializeAsString());
}

TEST(AssembleTest, NothingTimedIsAnError) {
  const MeasuringPlan plan = *MakePlan(*models::LoadModel("gpt2"), {});
  const auto profile = AssembleProfile(plan, Calibration(), Planted());
  EXPECT_TRUE(absl::IsInvalidArgument(profile.status()));
}

TEST(StartProfileTest, BoardsAreKnownByTheDriversNames) {
  EXPECT_EQ(*StartProfileOf("NVIDIA H200"), "h200-sxm");
  EXPECT_EQ(*StartProfileOf("NVIDIA H100 80GB HBM3"), "h100-sxm");
  EXPECT_EQ(*StartProfileOf("NVIDIA A100-SXM4-40GB"), "a100-sxm-40gb");
  EXPECT_EQ(*StartProfileOf("Tesla T4"), "t4");
  for (const char* other :
       {"NVIDIA H100 PCIe", "NVIDIA H200 NVL", "NVIDIA GH200", "Quadro"}) {
    const auto start = StartProfileOf(other);
    EXPECT_TRUE(absl::IsNotFound(start.status())) << other;
    EXPECT_THAT(std::string(start.status().message()), HasSubstr("--start"));
    EXPECT_THAT(std::string(start.status().message()), HasSubstr("h200-sxm"));
  }
}

TEST(StartProfileTest, OtherBoardsStartFromTheMostSimilarOne) {
  EXPECT_EQ(*ClosestProfile(80e9, 132, "bf16"), "h100-sxm");
  EXPECT_EQ(*ClosestProfile(40e9, 108, "bf16"), "a100-sxm-40gb");
  EXPECT_EQ(*ClosestProfile(141e9, 132, "bf16"), "h200-sxm");
  EXPECT_EQ(*ClosestProfile(80e9, 114, "bf16"), "a100-sxm-80gb");
  EXPECT_TRUE(ClosestProfile(0, 0, "bf16").ok());
  EXPECT_TRUE(absl::IsNotFound(ClosestProfile(80e9, 132, "int4").status()));
  Provenance gpu;
  gpu.set_gpu_name("NVIDIA H200");
  std::string remark;
  EXPECT_EQ(*StartProfileFor(gpu, "bf16", &remark), "h200-sxm");
  EXPECT_EQ(remark, "");
  gpu.set_gpu_name("NVIDIA H200 NVL");
  gpu.set_num_multiprocessors(132);
  gpu.set_memory_bytes(150109106995);
  EXPECT_EQ(*StartProfileFor(gpu, "bf16", &remark), "h200-sxm");
  EXPECT_THAT(remark, HasSubstr("no preset is known for NVIDIA H200 NVL"));
}

TEST(StartProfileTest, AStartOfAnotherGpuIsARemark) {
  const Provenance h200 = FakeBench(Quiet()).provenance();
  EXPECT_EQ(OtherStart(*LoadDeviceProfile("h200-sxm"), h200), "");
  EXPECT_EQ(OtherStart(*LoadDeviceProfile("h200-sxm"), Provenance()), "");
  EXPECT_THAT(OtherStart(*LoadDeviceProfile("a100-sxm-80gb"), h200),
              HasSubstr("108 multiprocessors, this GPU has 132"));
  EXPECT_THAT(
      OtherStart(*LoadDeviceProfile("h100-sxm"), h200),
      HasSubstr("this GPU has 140 GiB: its datasheet parameters are used"));
  Loop loop = RunLoop(Quiet(), "gpt2");
  const auto profile =
      AssembleProfile(loop.plan, loop.journal, *LoadDeviceProfile("h100-sxm"));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(profile->provenance().remarks(0), HasSubstr("H100-SXM5-80GB"));
}

TEST(AssembleTest, AResidualIsOfWhatItsFitHasNotSeen) {
  FakeBenchOptions options = Quiet();
  options.noise = 0.02;
  const Loop loop = RunLoop(options, "gpt2");
  EXPECT_THAT(loop.profile.gemm_residual().source(),
              HasSubstr("with their (n, k) left out"));
  EXPECT_THAT(loop.profile.memory_residual().source(),
              HasSubstr("in cross-validation (10 folds)"));
  EXPECT_NE(loop.profile.gemm_residual().value(),
            loop.start.gemm_residual().value());
}

// A few samples determine neither the error of a fit nor the cost of a launch.
TEST(AssembleTest, WhatFewSamplesCannotTellStaysTheStarts) {
  Loop loop = RunLoop(Quiet(), "gpt2");
  Calibration few = loop.journal;
  few.clear_workloads();
  for (const WorkloadResult& result : loop.journal.workloads()) {
    if (result.key() == "copy of 64 MiB" ||
        result.key().find("attention_forward") == 0 ||
        result.key() == loop.plan.reference.key) {
      if (few.workloads_size() < 3) *few.add_workloads() = result;
    }
  }
  const auto profile = AssembleProfile(loop.plan, few, loop.start);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->memory_efficiency().kind(), Figure::FITTED);
  const auto same = [](const Figure& a, const Figure& b) {
    EXPECT_EQ(a.SerializeAsString(), b.SerializeAsString());
  };
  same(profile->kernel_seconds(), loop.start.kernel_seconds());
  same(profile->memory_residual(), loop.start.memory_residual());
  same(profile->gemm_residual(), loop.start.gemm_residual());
}

TEST(AssembleTest, StartThatRanksMeasuredKeepsThemInItsProvenance) {
  const Loop loop = RunLoop(Quiet(), "gpt2");
  DeviceProfile start = loop.start;
  Provenance* network = start.mutable_provenance();
  network->set_gpu_name("NVIDIA H200");
  network->set_num_ranks(64);
  network->set_num_nodes(8);
  network->set_command("weir-calibrate network");
  network->mutable_software()->set_nccl("2.99.1");
  const auto profile = AssembleProfile(loop.plan, loop.journal, start);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const Provenance& both = profile->provenance();
  EXPECT_EQ(both.num_ranks(), 64U);
  EXPECT_EQ(both.num_nodes(), 8U);
  EXPECT_EQ(both.software().nccl(), "2.99.1");
  EXPECT_EQ(both.software().cublas(),
            loop.journal.provenance().software().cublas());
  EXPECT_EQ(both.measured_on(), "2026-01-31");
}

}  // namespace weir::calibrate::assemble_test
