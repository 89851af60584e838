// SPDX-License-Identifier: Apache-2.0
#include "plan/sensitivity/sensitivity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <string>

#include "base/interrupt.h"
#include "base/textproto.h"
#include "sim/costs/scenario_figures.h"
#include "sim/simulate.h"

namespace weir::plan::sensitivity_test {

using testing::HasSubstr;

scenarios::ResolvedScenario Resolve(const std::string& text) {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto("test", text, &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *resolved;
}

// Two stages on GPUs of one node: its network adapters are not used.
scenarios::ResolvedScenario TwoStages() {
  return Resolve(R"(
      model: "gpt2" cluster: "dgx-a100" num_nodes: 1
      parallelism { pipeline: 2 } schedule: "1f1b"
      batch { microbatch_size: 1 global_batch_size: 4 })");
}

double BatchSeconds(const scenarios::ResolvedScenario& scenario) {
  const auto result = sim::Simulate(scenario);
  EXPECT_TRUE(result.ok()) << result.status();
  return result->batch_seconds();
}

TEST(SensitivityTest, ElasticitiesCompareWithLargerValues) {
  const scenarios::ResolvedScenario scenario = TwoStages();
  const double seconds = BatchSeconds(scenario);
  const auto elasticities = ElasticitiesOf(scenario, seconds);
  ASSERT_TRUE(elasticities.ok()) << elasticities.status();
  const auto figures = sim::FiguresOf(scenario);
  ASSERT_EQ(elasticities->size(), figures.size());
  int num_faster = 0, num_slower = 0;
  for (size_t i = 0; i < figures.size(); ++i) {
    const double larger =
        BatchSeconds(sim::WithFigure(scenario, static_cast<int>(i), 1.01));
    EXPECT_NEAR((*elasticities)[i], std::log(larger / seconds) / std::log(1.01),
                1e-12)
        << figures[i].path;
    num_faster += (*elasticities)[i] < 0;
    num_slower += (*elasticities)[i] > 0;
  }
  EXPECT_GT(num_faster, 3);  // rates
  EXPECT_GT(num_slower, 1);  // latencies
}

TEST(SensitivityTest, AnExplanationListsTheFiguresThatChangeTheTime) {
  const scenarios::ResolvedScenario scenario = TwoStages();
  const auto result = sim::Simulate(scenario);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto explanation = ExplainResult(scenario, *result);
  ASSERT_TRUE(explanation.ok()) << explanation.status();
  EXPECT_EQ(explanation->result.batch_seconds(), result->batch_seconds());
  EXPECT_GT(explanation->num_without_influence, 0);
  EXPECT_EQ(explanation->figures.size() + explanation->num_without_influence,
            sim::FiguresOf(scenario).size());
  for (const results::FigureInfluence& figure : explanation->figures) {
    EXPECT_NE(figure.elasticity, 0) << figure.path;
    EXPECT_THAT(figure.path, testing::Not(HasSubstr("nics"))) << figure.owner;
    EXPECT_FALSE(figure.kind.empty()) << figure.path;
  }
}

TEST(SensitivityTest, ProcessesAndProgressChangeNothing) {
  const scenarios::ResolvedScenario scenario = TwoStages();
  const double seconds = BatchSeconds(scenario);
  SensitivityOptions options;
  options.num_processes = 1;
  const auto one = ElasticitiesOf(scenario, seconds, options);
  options.num_processes = 3;
  int last = 0;
  options.progress = [&](int num_done, int num_figures) {
    EXPECT_GE(num_done, last);
    EXPECT_LE(num_done, num_figures);
    last = num_done;
  };
  const auto three = ElasticitiesOf(scenario, seconds, options);
  ASSERT_TRUE(one.ok() && three.ok());
  EXPECT_EQ(*one, *three);
  EXPECT_EQ(last, one->size());
}

TEST(SensitivityTest, CostsGivenByHandHaveNoFigures) {
  EXPECT_TRUE(CheckHasFigures(TwoStages()).ok());
  const auto given = Resolve(R"(
      parallelism { pipeline: 2 } schedule: "gpipe" num_microbatches: 2
      costs { stages { forward_seconds: 1 backward_seconds: 2 } })");
  const absl::Status status = CheckHasFigures(given);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("test: has given costs"));
}

TEST(SensitivityTest, AnInterruptCancels) {
  const scenarios::ResolvedScenario scenario = TwoStages();
  SensitivityOptions options;
  options.progress = [](int, int) {
    if (!Interrupted()) raise(SIGINT);
  };
  NoteInterrupt();
  const auto elasticities = ElasticitiesOf(scenario, 1, options);
  ForgetInterrupt();
  ExitOnInterrupt();
  EXPECT_TRUE(absl::IsCancelled(elasticities.status()))
      << elasticities.status();
}

}  // namespace weir::plan::sensitivity_test
