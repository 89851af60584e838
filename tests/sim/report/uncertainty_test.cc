// SPDX-License-Identifier: Apache-2.0
#include "sim/report/uncertainty.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "calibrate/profile/figures.h"
#include "sim/costs/scenario_figures.h"
#include "sim/simulate.h"
#include "tests/sim/measured.h"

namespace weir::sim::uncertainty_test {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

scenarios::ResolvedScenario Preset(const std::string& name) {
  auto scenario = scenarios::LoadScenario(name);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  scenario->mutable_batch()->set_global_batch_size(
      scenario->batch().microbatch_size() * 16 *
      std::max(1u, scenario->parallelism().data()));
  auto resolved = scenarios::ResolveScenario(name, *scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *std::move(resolved);
}

Figure FigureOf(Figure::Kind kind) {
  Figure figure;
  figure.set_kind(kind);
  return figure;
}

TEST(UncertaintyTest, AFigureSaysHowWrongItIsOrItsKindDoes) {
  EXPECT_EQ(calibrate::RelativeError(FigureOf(Figure::DATASHEET)), 0);
  EXPECT_EQ(calibrate::RelativeError(FigureOf(Figure::MEASURED)), 0.02);
  EXPECT_EQ(calibrate::RelativeError(FigureOf(Figure::FITTED)), 0.05);
  EXPECT_EQ(calibrate::RelativeError(FigureOf(Figure::ASSUMED)), 0.2);
  Figure exact = FigureOf(Figure::ASSUMED);
  exact.set_relative_error(0);
  EXPECT_EQ(calibrate::RelativeError(exact), 0);
}

// One pass that runs each kernel once.
GpuWork WorkOfKernels(const std::vector<models::Kernel>& kernels) {
  GpuWork work;
  work.peak_flops = 1e15;
  work.kernels = kernels;
  GpuWork::Pass& pass = work.passes.emplace_back();
  pass.count = 1;
  for (size_t i = 0; i < kernels.size(); ++i) {
    pass.kernels.push_back({static_cast<int>(i), 1});
  }
  return work;
}

models::Kernel Stream(models::KernelPart part, double bytes) {
  models::Kernel kernel;
  kernel.part = part;
  kernel.bytes = bytes;
  return kernel;
}

// If two independent halves of a time have an error of s each, each contributes
// half: the error of the sum is sqrt(2) ln((1 + e^s) / 2). Kernels of the same
// kind have the same error.
TEST(UncertaintyTest, KindsAreIndependentAndOneKindIsNot) {
  scenarios::ResolvedScenario scenario;
  scenario.device = FreeDevice();
  scenario.device.mutable_memory_bytes_per_second()->set_value(1e9);
  scenario.device.mutable_memory_residual()->set_value(0.1);
  const auto kernels_of = [&](models::KernelPart a, models::KernelPart b) {
    return UncertaintyOf(scenario, WorkOfKernels({Stream(a, 1e9 - 1),
                                                  Stream(b, 1e9 - 1)}))
        .kernels();
  };
  EXPECT_NEAR(
      kernels_of(models::KernelPart::kNorm, models::KernelPart::kSoftmax),
      std::sqrt(2) * std::log((1 + std::exp(0.1)) / 2), 1e-9);
  EXPECT_NEAR(kernels_of(models::KernelPart::kNorm, models::KernelPart::kNorm),
              0.1, 1e-9);
}

TEST(UncertaintyTest, GemmsAndAttentionOfOneShapeAreIndependent) {
  scenarios::ResolvedScenario scenario;
  scenario.device = FreeDevice();
  scenario.device.mutable_gemm_residual()->set_value(0.1);
  const auto kernels_of = [&](models::Kernel::Kind a, models::Kernel::Kind b) {
    std::vector<models::Kernel> kernels;
    for (const models::Kernel::Kind kind : {a, b}) {
      models::Kernel& kernel = kernels.emplace_back();
      kernel.kind = kind;
      kernel.batch = 1;
      kernel.m = kernel.n = kernel.k = 1024;
      kernel.flops = 2 * std::pow(1024, 3);
      kernel.bytes = 3 * 2 * std::pow(1024, 2);
    }
    return UncertaintyOf(scenario, WorkOfKernels(kernels)).kernels();
  };
  EXPECT_NEAR(
      kernels_of(models::Kernel::Kind::kGemm, models::Kernel::Kind::kGemm), 0.1,
      1e-9);
  EXPECT_NEAR(kernels_of(models::Kernel::Kind::kAttention,
                         models::Kernel::Kind::kAttention),
              0.1, 1e-9);
  const double both =
      kernels_of(models::Kernel::Kind::kGemm, models::Kernel::Kind::kAttention);
  EXPECT_LT(both, 0.1 - 1e-4);
  EXPECT_GT(both, 0);
}

TEST(UncertaintyTest, NineOfTenAreWithinTheInterval) {
  const auto result = Simulate(Preset("pipedream-flush-gpt-2.2b"));
  ASSERT_TRUE(result.ok()) << result.status();
  const LogErrors errors = TotalLogErrors(result->uncertainty());
  EXPECT_NEAR(std::log(result->batch_seconds_high() / result->batch_seconds()),
              1.6448536269514722 * errors.slower, 1e-9);
  EXPECT_NEAR(std::log(result->batch_seconds_low() / result->batch_seconds()),
              -1.6448536269514722 * errors.faster, 1e-9);
  EXPECT_GT(result->uncertainty().figures(), 0);
  EXPECT_GT(result->uncertainty().kernels(), 0);
  EXPECT_GT(result->uncertainty().collectives(), 0);
}

// A device, a runtime or a format without measured steps widens the interval,
// and one line says so.
TEST(UncertaintyTest, WhatIsNotOnRecordWidensTheInterval) {
  scenarios::ResolvedScenario scenario = Preset("pipedream-flush-gpt-2.2b");
  scenario.device.set_num_step_sources(2);
  scenario.runtime.set_num_step_sources(1);
  scenario.scenario.mutable_training()->set_precision(MIXED_FP16);
  const auto error_of = [](const scenarios::ResolvedScenario& resolved,
                           int num_warnings) {
    const auto result = Simulate(resolved);
    EXPECT_TRUE(result.ok()) << result.status();
    int found = 0;
    for (const std::string& warning : result->warnings()) {
      if (absl::StrContains(warning, "no measured training step is on record"))
        ++found;
    }
    EXPECT_EQ(found, num_warnings);
    return result->uncertainty().unrecorded();
  };
  EXPECT_EQ(error_of(scenario, 0), 0);
  scenarios::ResolvedScenario other = scenario;
  other.device.clear_num_step_sources();
  EXPECT_NEAR(error_of(other, 1), 0.15, 1e-12);
  other.runtime.clear_num_step_sources();
  EXPECT_NEAR(error_of(other, 1), std::hypot(0.15, 0.1), 1e-12);
}

// Formats of GEMMs with measured steps on the device add nothing; those without
// do, and so does attention in 8 bits.
TEST(UncertaintyTest, FormatsWithMeasuredStepsAreOnRecord) {
  const auto error_of = [](const std::string& recipe, bool attention,
                           bool recorded) {
    Scenario scenario = *scenarios::LoadScenario("llama-3-70b-64-h100");
    scenario.mutable_training()->clear_precision();
    scenario.mutable_training()->set_recipe(recipe);
    if (attention) {
      scenario.mutable_training()->set_attention_format(OPERAND_FP8);
    }
    auto resolved = scenarios::ResolveScenario("test", scenario);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    if (!recorded) {
      for (MatrixRate& rate : *resolved->device.mutable_matrix_rates()) {
        rate.clear_num_step_sources();
      }
    }
    const auto result = Simulate(*resolved);
    EXPECT_TRUE(result.ok()) << result.status();
    return result->uncertainty().unrecorded();
  };
  EXPECT_EQ(error_of("fp8-current", false, true), 0);
  EXPECT_NEAR(error_of("fp8-current", false, false), 0.1, 1e-12);
  EXPECT_NEAR(error_of("fp8-blockwise", false, true), 0.1, 1e-12);
  EXPECT_NEAR(error_of("fp8-current", true, true), 0.1, 1e-12);
  EXPECT_NEAR(error_of("fp8-current", true, false), 0.1 * std::sqrt(2), 1e-12);
}

// A prediction says if its GEMM rates are those of another device.
TEST(UncertaintyTest, AssumedGemmsAreNamed) {
  scenarios::ResolvedScenario scenario = Preset("pipedream-flush-gpt-2.2b");
  const auto num_warnings = [&] {
    const auto result = Simulate(scenario);
    EXPECT_TRUE(result.ok()) << result.status();
    int found = 0;
    for (const std::string& warning : result->warnings()) {
      found += absl::StrContains(
          warning, "is on record: its rates are assumed from the H100");
    }
    return found;
  };
  EXPECT_EQ(num_warnings(), 0);
  scenario.device.set_gemms_of("H100");
  EXPECT_EQ(num_warnings(), 1);
}

// The residuals of slow and of fast steps move one limit each.
TEST(UncertaintyTest, SlowAndFastStepsMoveOneLimitEach) {
  scenarios::ResolvedScenario scenario = Preset("pipedream-flush-gpt-2.2b");
  scenario.device.clear_slower_step_residual();
  scenario.device.clear_faster_step_residual();
  const auto before = Simulate(scenario);
  scenario.device.mutable_slower_step_residual()->set_value(0.3);
  const auto slower = Simulate(scenario);
  EXPECT_EQ(slower->batch_seconds_low(), before->batch_seconds_low());
  EXPECT_GT(slower->batch_seconds_high(), 1.1 * before->batch_seconds_high());
  scenario.device.clear_slower_step_residual();
  scenario.device.mutable_faster_step_residual()->set_value(0.3);
  const auto faster = Simulate(scenario);
  EXPECT_LT(faster->batch_seconds_low(), 0.9 * before->batch_seconds_low());
  EXPECT_EQ(faster->batch_seconds_high(), before->batch_seconds_high());
}

TEST(UncertaintyTest, WithoutAnythingWrongNothingIsUncertain) {
  scenarios::ResolvedScenario scenario = Preset("llama-2-70b-dgx-h100");
  for (google::protobuf::Message* message :
       {static_cast<google::protobuf::Message*>(&scenario.device),
        static_cast<google::protobuf::Message*>(&scenario.runtime)}) {
    for (const calibrate::NamedFigure& named : calibrate::FiguresOf(message)) {
      named.figure->set_relative_error(0);
    }
  }
  scenario.device.mutable_gemm_residual()->set_value(0);
  scenario.device.mutable_collective_residual()->set_value(0);
  scenario.device.mutable_memory_residual()->set_value(0);
  scenario.device.clear_slower_step_residual();
  scenario.device.clear_faster_step_residual();
  scenario.runtime.mutable_step_residual()->set_value(0.07);
  const auto result = Simulate(scenario);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(TotalLogErrors(result->uncertainty()).faster, 0.07, 1e-12);
}

// Compares the first-order change of a GPU's time with the simulator.
TEST(UncertaintyTest, FiguresMoveTheTimeAsTheSimulatorSays) {
  for (const char* name :
       {"llama-2-70b-dgx-h100", "pipedream-flush-gpt-2.2b"}) {
    for (const char* path :
         {"gemm.matrix_rate", "memory_efficiency",
          "collectives.link_efficiency", "collectives.net_efficiency"}) {
      SCOPED_TRACE(absl::StrCat(name, " ", path));
      scenarios::ResolvedScenario scenario = Preset(name);
      const auto before = Simulate(scenario);
      const auto figures = FiguresOf(scenario);
      scenarios::ResolvedScenario after_scenario = scenario;
      for (const calibrate::NamedFigure& named :
           calibrate::FiguresOf(&scenario.device)) {
        named.figure->set_relative_error(named.path == path ? 0.01 : 0);
      }
      for (const calibrate::NamedFigure& named :
           calibrate::FiguresOf(&scenario.runtime)) {
        named.figure->set_relative_error(0);
      }
      for (size_t i = 0; i < figures.size(); ++i) {
        if (figures[i].path == path) {
          after_scenario =
              WithFigure(scenario, static_cast<int>(i), std::exp(0.01));
        }
      }
      const auto estimated = Simulate(scenario);
      const auto after = Simulate(after_scenario);
      ASSERT_TRUE(before.ok() && estimated.ok() && after.ok());
      const double change =
          std::log(after->batch_seconds() / before->batch_seconds());
      // Within five hundredths of the time.
      EXPECT_NEAR(estimated->uncertainty().figures(), std::abs(change),
                  0.05 * 0.01);
    }
  }
}

TEST(UncertaintyTest, CostsByHandHaveNoInterval) {
  Scenario question;
  question.set_schedule("gpipe");
  question.mutable_parallelism()->set_pipeline(2);
  question.set_num_microbatches(2);
  auto costs = scenarios::ParseCosts("f=1,b=2");
  ASSERT_TRUE(costs.ok());
  *question.mutable_costs() = *costs;
  const auto scenario = scenarios::ResolveScenario("test", question);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const auto result = Simulate(*scenario);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->has_batch_seconds_low());
  EXPECT_FALSE(result->has_uncertainty());
}

// Relative errors of an empty work have no effect.
TEST(UncertaintyTest, WorkThatTakesNoTimeIsCertain) {
  const Uncertainty none = UncertaintyOf(Preset("llama-2-70b-dgx-h100"), {});
  EXPECT_EQ(none.figures(), 0);
  EXPECT_EQ(none.kernels(), 0);
  EXPECT_EQ(none.collectives(), 0);
  EXPECT_EQ(TotalLogErrors(none).slower, 0);
}

TEST(UncertaintyTest, WhatNobodyMeasuredIsSaid) {
  scenarios::ResolvedScenario scenario = Preset("pipedream-flush-gpt-2.2b");
  const auto outside = Simulate(scenario);
  ASSERT_TRUE(outside.ok()) << outside.status();
  EXPECT_THAT(outside->warnings(), Contains(HasSubstr("GEMMs whose shapes")));
  EXPECT_THAT(outside->warnings(), Contains(HasSubstr("between nodes")));
  Coverage& coverage = *scenario.device.mutable_coverage();
  for (Range* range :
       {coverage.mutable_gemm_m(), coverage.mutable_gemm_n(),
        coverage.mutable_gemm_k(), coverage.mutable_collective_bytes(),
        coverage.mutable_collective_ranks()}) {
    range->set_low(0);
    range->set_high(1e12);
  }
  coverage.set_between_nodes(true);
  coverage.set_batched_gemms(true);
  const auto inside = Simulate(scenario);
  ASSERT_TRUE(inside.ok()) << inside.status();
  EXPECT_THAT(inside->warnings(), IsEmpty());
}

}  // namespace weir::sim::uncertainty_test
