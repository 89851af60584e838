// SPDX-License-Identifier: Apache-2.0
#include "plan/goodput/reliability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/assets.h"

namespace weir::plan::reliability_test {

using testing::HasSubstr;

constexpr double kHour = 3600;

double HoursBetween(const std::string& preset, const JobSize& job) {
  const auto reliability = LoadReliability(preset);
  EXPECT_TRUE(reliability.ok()) << reliability.status();
  return MeanSecondsBetween(FailuresOfJob(*reliability, job)) / kHour;
}

TEST(ReliabilityTest, EveryPresetLoadsAndNamesItsSources) {
  EXPECT_EQ(ListAssets(kReliabilityFolder).size(), 4u);
  for (const std::string& name : ListAssets(kReliabilityFolder)) {
    const auto reliability = LoadReliability(name);
    ASSERT_TRUE(reliability.ok()) << reliability.status();
    EXPECT_FALSE(reliability->source().empty());
    EXPECT_FALSE(reliability->timing_source().empty());
    for (const FailureClass& each : reliability->classes()) {
      EXPECT_FALSE(each.source().empty()) << name << " " << each.name();
    }
  }
}

TEST(ReliabilityTest, PresetsGiveThePublishedTimesBetweenFailures) {
  // 419 failures in 54 days.
  EXPECT_NEAR(HoursBetween("llama-3-405b", {16384, 2048}), 54 * 24.0 / 419,
              1e-9);
  // Projections of the paper.
  EXPECT_NEAR(HoursBetween("meta-rsc-1", {16384, 2048}), 1.8, 0.005);
  EXPECT_NEAR(HoursBetween("meta-rsc-1", {131072, 16384}), 0.23, 0.005);
  // A failure a week.
  EXPECT_NEAR(HoursBetween("bloom-176b", {384, 48}), 7 * 24, 1e-9);
}

TEST(ReliabilityTest, RatesGrowWithTheNumberOfUnits) {
  Reliability reliability;
  ASSERT_TRUE(
      OverrideRates("gpu=1000h,host=100d,switch=1y,software=50", &reliability)
          .ok());
  reliability.set_nodes_per_switch(16);
  const auto failures = FailuresOfJob(reliability, {320, 40});
  ASSERT_EQ(failures.size(), 4u);
  EXPECT_NEAR(failures[0].mean_seconds_between, 1000 * kHour / 320, 1e-6);
  EXPECT_NEAR(failures[1].mean_seconds_between, 2400 * kHour / 40, 1e-6);
  EXPECT_NEAR(failures[2].mean_seconds_between, 8766 * kHour / 3, 1e-6);
  EXPECT_NEAR(failures[3].mean_seconds_between, 50 * kHour, 1e-6);
  EXPECT_TRUE(failures[0].replaces_node);
  EXPECT_FALSE(failures[3].replaces_node);
}

TEST(ReliabilityTest, OverridesReplaceObservations) {
  auto reliability = LoadReliability("llama-3-405b");
  ASSERT_TRUE(reliability.ok());
  ASSERT_TRUE(OverrideRates("gpu=16384h", &*reliability).ok());
  ASSERT_TRUE(ValidateReliability("x", *reliability).ok());
  EXPECT_NEAR(
      FailuresOfJob(*reliability, {16384, 2048})[0].mean_seconds_between, kHour,
      1e-9);
}

TEST(ReliabilityTest, BadRatesAreNamedTogether) {
  Reliability reliability;
  const std::string message(
      OverrideRates("gpu=x,nonesuch=5h,host,gpu=1h", &reliability).message());
  EXPECT_THAT(message, HasSubstr("--mtbf: gpu is x, expected hours"));
  EXPECT_THAT(message, HasSubstr("gpu is given twice, expected once"));
  EXPECT_THAT(message, HasSubstr("nonesuch is not a class of failures"));
  EXPECT_THAT(message, HasSubstr("is host, expected NAME=HOURS"));
}

TEST(ReliabilityTest, BadFilesAreRefusedFieldByField) {
  Reliability reliability;
  EXPECT_THAT(std::string(ValidateReliability("r", reliability).message()),
              HasSubstr("classes is empty"));
  FailureClass* each = reliability.add_classes();
  each->set_failures(3);
  each->set_mean_hours_between_failures(2);
  reliability.set_detection_seconds(-1);
  const std::string message(ValidateReliability("r", reliability).message());
  EXPECT_THAT(message, HasSubstr("classes[0].name is empty"));
  EXPECT_THAT(message, HasSubstr("classes[0].unit is not set"));
  EXPECT_THAT(message, HasSubstr("expected one"));
  EXPECT_THAT(message, HasSubstr("detection_seconds"));
}

}  // namespace weir::plan::reliability_test
