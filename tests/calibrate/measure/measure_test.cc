// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "calibrate/measure/journal.h"
#include "models/model.h"
#include "tests/calibrate/measure/fake_bench.h"

namespace weir::calibrate::measure_test {

using testing::HasSubstr;

// Returns a plan that is quick to measure: one stage of one size, without the
// grid of GEMMs.
MeasuringPlan SmallPlan() {
  PlanOptions options;
  options.microbatch_sizes = {2};
  MeasuringPlan plan = *MakePlan(*models::LoadModel("gpt2"), options);
  std::set<std::string> needed = {plan.reference.key};
  plan.stages.resize(1);
  std::erase_if(plan.passes, [](const auto& pass) { return pass.stage > 0; });
  std::erase_if(plan.memory,
                [](const auto& memory) { return memory.stage > 0; });
  for (const PlannedPass& pass : plan.passes) {
    needed.insert(pass.key);
    needed.insert(pass.op_keys.begin(), pass.op_keys.end());
  }
  std::erase_if(plan.workloads, [&](const Workload& workload) {
    return needed.count(workload.key) == 0;
  });
  return plan;
}

struct Outcome {
  absl::Status status;
  Calibration journal;
};

Outcome MeasureAll(FakeBench* bench, const MeasuringPlan& plan,
                   const CalibrationOptions& options = {},
                   Calibration journal = {}) {
  Outcome run;
  run.journal = std::move(journal);
  run.status = Measure(plan, options, {}, bench, &run.journal);
  return run;
}

TEST(MeasureTest, MediansAreTheDevicesOwn) {
  const MeasuringPlan plan = SmallPlan();
  FakeBench bench(FakeH200());
  const Outcome run = MeasureAll(&bench, plan);
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.journal.workloads_size(), int(plan.workloads.size()));
  for (const Workload& workload : plan.workloads) {
    const WorkloadResult* result = FindResult(run.journal, workload.key);
    ASSERT_NE(result, nullptr);
    EXPECT_EQ(result->state(), WorkloadResult::TIMED) << workload.key;
    EXPECT_NEAR(result->seconds().p50() / bench.TrueSeconds(workload), 1, 1e-9);
    EXPECT_NEAR(result->reference_ratio(), 1, 1e-9);
  }
  EXPECT_EQ(run.journal.stage_memory_size(), 3);
  EXPECT_EQ(run.journal.memory_steps().context_bytes(), 5.2e8);
}

TEST(MeasureTest, NoiseOutliersAndClockRampsHardlyMoveMedians) {
  const MeasuringPlan plan = SmallPlan();
  FakeBenchOptions options = FakeH200();
  options.noise = 0.02;
  options.outlier_part = 0.05;
  options.clock_ramp = 0.3;
  FakeBench bench(options);
  const Outcome run = MeasureAll(&bench, plan);
  ASSERT_TRUE(run.status.ok()) << run.status;
  int held = 0;
  for (const Workload& workload : plan.workloads) {
    const WorkloadResult* result = FindResult(run.journal, workload.key);
    const double off =
        std::abs(result->seconds().p50() / bench.TrueSeconds(workload) - 1);
    EXPECT_LT(off, 0.02) << workload.key;
    held += off <= result->seconds().relative_ci() + 2e-3;  // shift by outliers
  }
  EXPECT_GT(held, 0.85 * plan.workloads.size());
}

// The bound for repeating a calibration.
TEST(MeasureTest, RepeatAgreesWithinTwoPercent) {
  const MeasuringPlan plan = SmallPlan();
  FakeBenchOptions options = FakeH200();
  options.noise = 0.02;
  options.outlier_part = 0.02;
  options.clock_ramp = 0.2;
  FakeBench first(options);
  options.seed = 2;
  FakeBench second(options);
  const Outcome once = MeasureAll(&first, plan);
  const Outcome twice = MeasureAll(&second, plan);
  for (const WorkloadResult& result : once.journal.workloads()) {
    const WorkloadResult* again = FindResult(twice.journal, result.key());
    EXPECT_NEAR(again->seconds().p50() / result.seconds().p50(), 1, 0.02)
        << result.key();
  }
}

TEST(MeasureTest, WrongOperationsAreNotTimedNorPassesThatHaveThem) {
  const MeasuringPlan plan = SmallPlan();
  FakeBenchOptions options = FakeH200();
  options.wrong = {"norm_forward", "gelu_gradient"};
  FakeBench bench(options);
  const Outcome run = MeasureAll(&bench, plan);
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_GE(NumRefused(run.journal), 2);
  for (const WorkloadResult& result : run.journal.workloads()) {
    const bool wrong = absl::StrContains(result.key(), "norm_forward") ||
                       absl::StrContains(result.key(), "gelu_gradient");
    EXPECT_EQ(result.state() == WorkloadResult::REFUSED, wrong) << result.key();
    if (wrong) {
      EXPECT_EQ(result.seconds().num_samples(), 0);
      EXPECT_THAT(result.reason(), HasSubstr("relative error"));
    }
  }
  for (const PlannedPass& pass : plan.passes) {
    const WorkloadResult* result = FindResult(run.journal, pass.key);
    const bool optimizer = pass.pass == ProgramPass::kOptimizer;
    if (pass.pass == ProgramPass::kForward) {
      EXPECT_EQ(result->state(), WorkloadResult::SKIPPED);
      EXPECT_THAT(result->reason(), HasSubstr("norm_forward"));
    }
    if (optimizer) {
      EXPECT_EQ(result->state(), WorkloadResult::TIMED);
    }
  }
}

TEST(MeasureTest, WhatDoesNotFitIsSkippedAndNoFailure) {
  const MeasuringPlan plan = SmallPlan();
  FakeBenchOptions options = FakeH200();
  options.too_large = {"gemm m 4096 n 4096"};
  FakeBench bench(options);
  // If the reference itself does not fit, that is an error.
  EXPECT_TRUE(absl::IsResourceExhausted(MeasureAll(&bench, plan).status));
  options.too_large = {"attention_backward"};
  FakeBench smaller(options);
  const Outcome run = MeasureAll(&smaller, plan);
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(NumRefused(run.journal), 0);
}

TEST(MeasureTest, BrokenWorkloadsAreRefusedAndABrokenGpuEndsIt) {
  const MeasuringPlan plan = SmallPlan();
  FakeBenchOptions options = FakeH200();
  options.breaks = {"norm", "bias", "attention"};
  FakeBench bench(options);
  // The GPU itself still works: failing workloads are refused, the rest is
  // measured.
  const Outcome run = MeasureAll(&bench, plan);
  EXPECT_TRUE(run.status.ok()) << run.status;
  EXPECT_GT(NumRefused(run.journal), 3);
  options.breaks_after_seconds = 2;
  FakeBench dying(options);
  const Outcome end = MeasureAll(&dying, plan);
  EXPECT_TRUE(absl::IsAborted(end.status)) << end.status;
  EXPECT_THAT(std::string(end.status.message()),
              HasSubstr("illegal memory access"));
}

TEST(MeasureTest, DriftIsMeasuredAgainAndForgottenWhenItPasses) {
  const MeasuringPlan plan = SmallPlan();
  FakeBenchOptions options = FakeH200();
  options.episodes = {{3.0, 8.0, 1.3, true, false}};
  FakeBench bench(options);
  const Outcome run = MeasureAll(&bench, plan);
  ASSERT_TRUE(run.status.ok()) << run.status;
  int repeated = 0;
  for (const Workload& workload : plan.workloads) {
    const WorkloadResult* result = FindResult(run.journal, workload.key);
    repeated += result->num_repeats() > 0;
    if (result->drifted()) continue;
    EXPECT_NEAR(result->seconds().p50() / bench.TrueSeconds(workload), 1, 0.02)
        << workload.key;
  }
  EXPECT_GT(repeated, 3);
}

// Verification takes the host longer than timing takes the GPU.
TEST(MeasureTest, RepeatedOperationsAreVerifiedOnce) {
  const MeasuringPlan plan = SmallPlan();
  FakeBenchOptions options = FakeH200();
  options.episodes = {{3.0, 8.0, 1.3, true, false}};
  FakeBench bench(options);
  const Outcome run = MeasureAll(&bench, plan);
  ASSERT_TRUE(run.status.ok()) << run.status;
  int repeated = 0;
  for (const Workload& workload : plan.workloads) {
    const WorkloadResult* result = FindResult(run.journal, workload.key);
    EXPECT_GT(result->relative_error(), 0) << workload.key;
    if (workload.kind != Workload::Kind::kOp) continue;
    repeated += result->num_repeats() > 0;
    EXPECT_EQ(std::count(bench.verified().begin(), bench.verified().end(),
                         workload.key),
              1)
        << workload.key;
  }
  EXPECT_GT(repeated, 3);
}

// As on an H100 at 700 W, where repetitions moved by as much again.
TEST(MeasureTest, DriftAtThePowerLimitIsFlaggedAndNotMeasuredAgain) {
  const MeasuringPlan plan = SmallPlan();
  FakeBenchOptions options = FakeH200();
  options.episodes = {{0, 1e9, 1, true, false}, {4.0, 9.0, 1.06, true, false}};
  FakeBench bench(options);
  const Outcome run = MeasureAll(&bench, plan);
  ASSERT_TRUE(run.status.ok()) << run.status;
  int flagged = 0;
  for (const WorkloadResult& result : run.journal.workloads()) {
    EXPECT_EQ(result.num_repeats(), 0) << result.key();
    flagged += result.drifted();
  }
  EXPECT_GT(flagged, 3);
}

TEST(MeasureTest, DriftThatStaysIsBoundedAndFlagged) {
  const MeasuringPlan plan = SmallPlan();
  FakeBenchOptions options = FakeH200();
  options.episodes = {{4.0, 1e9, 1.1, false, true}};
  FakeBench bench(options);
  const Outcome run = MeasureAll(&bench, plan);
  ASSERT_TRUE(run.status.ok()) << run.status;
  int flagged = 0;
  for (const WorkloadResult& result : run.journal.workloads()) {
    EXPECT_LE(result.num_repeats(), 2);
    if (!result.drifted()) continue;
    ++flagged;
    EXPECT_NEAR(result.reference_ratio(), 1.1, 1e-3);
    EXPECT_GT(result.num_slowed_by_heat(), 0);
  }
  EXPECT_GT(flagged, 3);
}

// Removes the state of the reference, which depends on when it was measured.
std::string WithoutReference(Calibration journal) {
  for (WorkloadResult& result : *journal.mutable_workloads()) {
    result.clear_reference_ratio();
  }
  return journal.SerializeAsString();
}

TEST(MeasureTest, ResumedAfterAnyWorkloadItIsTheUndisturbedRun) {
  const MeasuringPlan plan = SmallPlan();
  FakeBenchOptions options = FakeH200();
  options.noise = 0.01;
  FakeBench whole(options);
  const Outcome undisturbed = MeasureAll(&whole, plan);
  for (int after : {0, 1, 7, 20}) {
    FakeBench first(options);
    Calibration saved;
    int ended = 0;
    CalibrationHooks hooks;
    hooks.save = [&](const Calibration& journal) {
      saved = journal;  // what remains after a kill -9
      return absl::OkStatus();
    };
    hooks.end = [&](const WorkloadResult&) { ++ended; };
    hooks.stop = [&] { return ended >= after; };
    Calibration journal;
    EXPECT_TRUE(absl::IsCancelled(
        Measure(plan, CalibrationOptions(), hooks, &first, &journal)));
    EXPECT_EQ(saved.workloads_size(), after);
    FakeBench second(options);
    const Outcome resumed = MeasureAll(&second, plan, {}, saved);
    ASSERT_TRUE(resumed.status.ok()) << resumed.status;
    EXPECT_EQ(WithoutReference(resumed.journal),
              WithoutReference(undisturbed.journal))
        << after;
    // No workload is measured twice.
    for (const WorkloadResult& result : saved.workloads()) {
      EXPECT_EQ(std::count(second.prepared().begin(), second.prepared().end(),
                           result.key()),
                result.key() == plan.reference.key ? 1 : 0);
    }
  }
}

TEST(MeasureTest, CheckVerifiesAllAndTimesNothing) {
  const MeasuringPlan plan = SmallPlan();
  FakeBenchOptions options = FakeH200();
  options.hangs = {""};  // everything that runs hangs
  FakeBench bench(options);
  CalibrationOptions measure;
  measure.only_verify = true;
  const Outcome run = MeasureAll(&bench, plan, measure);
  ASSERT_TRUE(run.status.ok()) << run.status;
  for (const WorkloadResult& result : run.journal.workloads()) {
    EXPECT_EQ(result.state(), WorkloadResult::VERIFIED);
  }
}

TEST(JournalTest, ComesBackAsItWasSaved) {
  const MeasuringPlan plan = SmallPlan();
  FakeBench bench(FakeH200());
  const Outcome run = MeasureAll(&bench, plan);
  const std::string path =
      absl::StrCat(testing::TempDir(), "weir_journal_", getpid());
  ASSERT_TRUE(SaveJournal(path, run.journal).ok());
  const auto loaded = LoadJournal(path);
  std::remove(path.c_str());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->SerializeAsString(), run.journal.SerializeAsString());
}

TEST(JournalTest, AnotherMachineIsRefusedWithBothNamed) {
  Calibration journal;
  journal.mutable_provenance()->set_gpu_name("NVIDIA H100 80GB HBM3");
  journal.mutable_provenance()->mutable_software()->set_cublas("12.4.5");
  Calibration now;
  now.mutable_provenance()->set_gpu_name("NVIDIA H200");
  now.mutable_provenance()->mutable_software()->set_cublas("13.1.0");
  now.set_num_partitions(4);
  const absl::Status status = CheckSameMachine("a.partial", journal, now);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  for (const char* part :
       {"a.partial", "NVIDIA H100 80GB HBM3", "NVIDIA H200", "12.4.5", "13.1.0",
        "num_partitions is 0, this run has 4"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
  EXPECT_TRUE(CheckSameMachine("a", now, now).ok());
}

}  // namespace weir::calibrate::measure_test
