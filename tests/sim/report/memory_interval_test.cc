// SPDX-License-Identifier: Apache-2.0
#include "sim/report/memory_interval.h"

#include <gtest/gtest.h>

#include <cmath>

#include "results/memory_limits.h"

namespace weir::sim::memory_interval_test {

constexpr double kGb = 1e9;

void Set(double value, Figure::Kind kind, Figure* figure) {
  figure->set_value(value);
  figure->set_kind(kind);
}

scenarios::ResolvedScenario Scenario() {
  scenarios::ResolvedScenario scenario;
  Set(80 * kGb, Figure::DATASHEET, scenario.device.mutable_memory_bytes());
  Set(kGb, Figure::ASSUMED, scenario.device.mutable_reserved_bytes());
  Set(kGb / 2, Figure::ASSUMED,
      scenario.device.mutable_communication_buffer_bytes());
  scenario.runtime.set_num_memory_sources(1);
  return scenario;
}

MemoryUncertainty Of(const scenarios::ResolvedScenario& scenario,
                     double allocated = 40 * kGb) {
  return MemoryUncertaintyOf(scenario, {.allocated_bytes = allocated,
                                        .reserved_bytes = kGb,
                                        .communicator_bytes = kGb / 2});
}

TEST(MemoryIntervalTest, UnknownCommunicatorsOnlyAddMemory) {
  scenarios::ResolvedScenario scenario = Scenario();
  const MemoryUncertainty unknown = Of(scenario);
  Set(kGb / 2, Figure::ASSUMED, scenario.runtime.mutable_communicator_bytes());
  const MemoryUncertainty stated = Of(scenario);
  EXPECT_NEAR(std::hypot(stated.more_bytes(), kGb), unknown.more_bytes(), 1);
  EXPECT_EQ(stated.less_bytes(), unknown.less_bytes());
}

TEST(MemoryIntervalTest, ProgramsWithoutMeasuredMemoryAreLessCertain) {
  scenarios::ResolvedScenario scenario = Scenario();
  EXPECT_EQ(Of(scenario).unrecorded_bytes(), 0);
  scenario.runtime.set_num_memory_sources(0);
  EXPECT_GT(Of(scenario).unrecorded_bytes(), 0);
}

// A measured context is more certain than an assumed one.
TEST(MemoryIntervalTest, ErrorsOfFiguresFollowFromTheirKind) {
  scenarios::ResolvedScenario scenario = Scenario();
  const double assumed = Of(scenario).library_bytes();
  Set(kGb, Figure::MEASURED, scenario.device.mutable_full_context_bytes());
  EXPECT_EQ(Of(scenario).library_bytes(), assumed);
  scenario.runtime.set_loads_all_kernels(true);
  EXPECT_LT(Of(scenario).library_bytes(), assumed);
}

// The largest peak that keeps the margin has its upper end at the capacity.
TEST(MemoryIntervalTest, TheMarginIsForTheUpperEnd) {
  const scenarios::ResolvedScenario scenario = Scenario();
  const double margin = MemoryMargin(scenario, 80 * kGb, 8);
  EXPECT_GT(margin, 0.05);
  EXPECT_LT(margin, 0.25);
  const double peak = (1 - margin) * 80 * kGb;
  const MemoryUncertainty error = Of(scenario, peak - 1.5 * kGb);
  EXPECT_NEAR(peak + results::LimitsOf(error).more_bytes, 80 * kGb, 1e3);
  // One GPU has no communicators.
  EXPECT_LT(MemoryMargin(scenario, 80 * kGb, 1), margin);
}

TEST(MemoryIntervalTest, EndsOfTheInterval) {
  MemoryUncertainty error;
  error.set_allocated_bytes(3);
  error.set_library_bytes(4);
  error.set_more_bytes(12);
  const results::MemoryLimits limits = results::LimitsOf(error);
  EXPECT_NEAR(limits.less_bytes, 1.6448536 * 5, 1e-6);
  EXPECT_NEAR(limits.more_bytes, 1.6448536 * 13, 1e-6);
  EXPECT_NEAR(results::AllocatedLimitsOf(error).more_bytes, 1.6448536 * 3,
              1e-6);
}

TEST(MemoryIntervalTest, VerdictsNearTheCapacity) {
  using results::FitVerdict;
  Result result;
  EXPECT_EQ(results::VerdictOf(result), FitVerdict::kFits);
  result.set_memory_capacity_bytes(100);
  result.set_peak_memory_bytes(90);
  result.set_fits_memory(true);
  EXPECT_EQ(results::VerdictOf(result), FitVerdict::kFits);  // no interval
  result.set_peak_memory_bytes_low(80);
  result.set_peak_memory_bytes_high(105);
  EXPECT_EQ(results::VerdictOf(result), FitVerdict::kMayNotFit);
  result.set_peak_memory_bytes_high(100);
  EXPECT_EQ(results::VerdictOf(result), FitVerdict::kFits);
  result.set_fits_memory(false);
  EXPECT_EQ(results::VerdictOf(result), FitVerdict::kMayFit);
  result.set_peak_memory_bytes_low(101);
  EXPECT_EQ(results::VerdictOf(result), FitVerdict::kDoesNotFit);
}

}  // namespace weir::sim::memory_interval_test
