// SPDX-License-Identifier: Apache-2.0
#include "scenarios/set_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/scenarios/small_scenarios.h"

namespace weir::scenarios::set_figures_test {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Scenario SmallWith(const std::vector<std::string>& settings) {
  Scenario scenario = Small();
  for (const std::string& setting : settings) {
    scenario.add_set_figures(setting);
  }
  return scenario;
}

TEST(SetFiguresTest, ChangesTheDeviceTheRuntimeAndTheCluster) {
  const auto resolved = ResolveScenario(
      "s", SmallWith({"kernel_seconds=1e-5", "device.memory_efficiency=0.5+-7%",
                      "runtime.exchange_seconds=2e-4",
                      "runtime.unfused_softmax=true",
                      "cluster.groups[0].node.nics[].bytes_per_second=1e9",
                      "kernel_seconds=2e-5"}));
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->device.kernel_seconds().value(), 2e-5);  // the last one
  EXPECT_EQ(resolved->device.memory_efficiency().value(), 0.5);
  EXPECT_EQ(resolved->device.memory_efficiency().relative_error(), 0.07);
  EXPECT_EQ(resolved->runtime.exchange_seconds().value(), 2e-4);
  EXPECT_TRUE(resolved->runtime.unfused_softmax());
  for (const Nic& nic : resolved->cluster.groups(0).node().nics()) {
    EXPECT_EQ(nic.bytes_per_second(), 1e9);
  }
  EXPECT_EQ(resolved->scenario.set_figures_size(), 6);
  EXPECT_THAT(resolved->warnings,
              AllOf(Contains(StartsWith("--set runtime.unfused_softmax=true "
                                        "replaces false")),
                    Contains(StartsWith("--set kernel_seconds=2e-5 replaces "
                                        "1e-05 (assumed)"))));
}

TEST(SetFiguresTest, DefaultsFollowASwitchOfTheRuntime) {
  Scenario scenario = SmallWith({"runtime.fp32_gradients_with_bf16=false"});
  scenario.mutable_training()->set_precision(MIXED_BF16);
  const auto resolved = ResolveScenario("s", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_FALSE(resolved->scenario.training().fp32_gradients());
}

TEST(SetFiguresTest, ReportsAllProblemsWithFlagFigureAndValue) {
  EXPECT_THAT(
      ProblemsOf(SmallWith({"sustained_rate=1", "kernel_seconds=x",
                            "exchange_seconds=1", "runtime.exchange_secnds=1",
                            "memory_efficiency"})),
      testing::UnorderedElementsAre(
          "s: --set is sustained_rate=1, expected the name of a parameter "
          "(weir profile show); did you mean gemm.sustained_rate?",
          AllOf(StartsWith("s: --set is kernel_seconds=x, expected a number"),
                HasSubstr("0.85+-5%")),
          "s: --set is exchange_seconds=1, expected the name of a parameter "
          "(weir profile show); did you mean runtime.exchange_seconds?",
          "s: --set is runtime.exchange_secnds=1, expected the name of a "
          "parameter (weir profile show); did you mean "
          "runtime.exchange_seconds?",
          StartsWith(
              "s: --set is memory_efficiency, expected PARAMETER=VALUE")));
}

TEST(SetFiguresTest, ChecksTheRangeOfAValue) {
  EXPECT_THAT(ProblemsOf(SmallWith(
                  {"memory_efficiency=3", "runtime.exchange_seconds=-1"})),
              testing::UnorderedElementsAre(
                  "s: --set: memory_efficiency.value is 3, expected 0.001 to 1",
                  "s: --set: exchange_seconds.value is -1, expected 0 to 10"));
}

TEST(SetFiguresTest, GivenCostsUseNoFigures) {
  Scenario scenario = GivenCostsScenario();
  scenario.add_set_figures("kernel_seconds=1");
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre(HasSubstr("--set kernel_seconds=1 has no effect")));
}

}  // namespace weir::scenarios::set_figures_test
