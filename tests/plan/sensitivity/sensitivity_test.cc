// SPDX-License-Identifier: Apache-2.0
#include "plan/sensitivity/sensitivity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <string>

#include "base/interrupt.h"
#include "base/textproto.h"
#include "calibrate/profile/figures.h"
#include "plan/sensitivity/parameters.h"
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
  const auto elasticities = ElasticitiesOf(scenario);
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

TEST(SensitivityTest, ParametersNameTheirSettingsAndUncertainties) {
  scenarios::ResolvedScenario scenario = TwoStages();
  const auto parameters = ParametersOf(scenario);
  const auto figures = sim::FiguresOf(scenario);
  ASSERT_EQ(parameters.size(), figures.size());
  int num_runtime = 0, num_cluster = 0;
  for (size_t i = 0; i < figures.size(); ++i) {
    EXPECT_EQ(parameters[i].path, figures[i].path);
    EXPECT_EQ(parameters[i].value, figures[i].value);
    if (parameters[i].setting() == "runtime.exchange_seconds") {
      ++num_runtime;
      EXPECT_EQ(parameters[i].relative_error, 0.2);  // assumed
    }
    if (parameters[i].setting() == "gemm.sustained_rate") {
      EXPECT_EQ(
          parameters[i].relative_error,
          calibrate::RelativeError(scenario.device.gemm().sustained_rate()));
    }
    num_cluster += parameters[i].setting().starts_with("cluster.groups[0]");
  }
  EXPECT_EQ(num_runtime, 1);
  EXPECT_GT(num_cluster, 2);
}

TEST(SensitivityTest, EveryCauseReproducesTheMeasurement) {
  const scenarios::ResolvedScenario scenario = TwoStages();
  const auto result = sim::Simulate(scenario);
  ASSERT_TRUE(result.ok()) << result.status();
  SensitivityOptions options;
  options.measured_seconds = 1.1 * result->batch_seconds();
  const auto explanation = ExplainResult(scenario, *result, options);
  ASSERT_TRUE(explanation.ok()) << explanation.status();
  ASSERT_TRUE(explanation->measured.has_value());
  const results::MeasuredExplanation& measured = *explanation->measured;
  EXPECT_GT(measured.causes.size(), 3);
  EXPECT_EQ(measured.causes.size() + measured.insufficient.size(),
            explanation->figures.size());
  const auto parameters = ParametersOf(scenario);
  double last = 0;
  for (const results::FigureCause& cause : measured.causes) {
    int index = 0;
    while (parameters[index].setting() != cause.path) ++index;
    EXPECT_NEAR(BatchSeconds(sim::WithFigure(scenario, index, cause.factor())),
                options.measured_seconds, 0.006 * options.measured_seconds)
        << cause.path;
    if (cause.deviations.has_value()) {
      EXPECT_NEAR(*cause.deviations,
                  std::abs(std::log(cause.factor())) / cause.relative_error,
                  1e-9);
      EXPECT_GE(*cause.deviations, last) << cause.path;
    }
    last = cause.deviations.value_or(HUGE_VAL);
    EXPECT_TRUE(
        HasValidParameters(sim::WithFigure(scenario, index, cause.factor())))
        << cause.path;
  }
}

TEST(SensitivityTest, AnEfficiencyCannotExceedOne) {
  const scenarios::ResolvedScenario scenario = TwoStages();
  const auto parameters = ParametersOf(scenario);
  int index = 0;
  while (parameters[index].path != "memory_efficiency") ++index;
  EXPECT_NEAR(ValidFactor(scenario, index, 100), 1 / parameters[index].value,
              0.002);
  // Ten times as fast would need efficiencies above one.
  SensitivityOptions options;
  const auto result = sim::Simulate(scenario);
  ASSERT_TRUE(result.ok());
  options.measured_seconds = result->batch_seconds() / 10;
  const auto explanation = ExplainResult(scenario, *result, options);
  ASSERT_TRUE(explanation.ok()) << explanation.status();
  EXPECT_THAT(explanation->measured->insufficient,
              testing::Contains("memory_efficiency"));
}

TEST(SensitivityTest, ProcessesAndProgressChangeNothing) {
  const scenarios::ResolvedScenario scenario = TwoStages();
  SensitivityOptions options;
  options.num_processes = 1;
  const auto one = ElasticitiesOf(scenario, options);
  options.num_processes = 3;
  int last = 0;
  options.progress = [&](int num_done, int num_figures) {
    EXPECT_GE(num_done, last);
    EXPECT_LE(num_done, num_figures);
    last = num_done;
  };
  const auto three = ElasticitiesOf(scenario, options);
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
  const auto elasticities = ElasticitiesOf(scenario, options);
  ForgetInterrupt();
  ExitOnInterrupt();
  EXPECT_TRUE(absl::IsCancelled(elasticities.status()))
      << elasticities.status();
}

}  // namespace weir::plan::sensitivity_test
