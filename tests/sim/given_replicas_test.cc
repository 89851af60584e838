// SPDX-License-Identifier: Apache-2.0
// Given costs of the replicas of a recorded run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/textproto.h"
#include "scenarios/scenario.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"

namespace weir::sim::given_replicas_test {

using testing::HasSubstr;

// Two stages; replica 1 has a slow second stage.
constexpr char kStages[] =
    "stages { forward_seconds: 1 backward_seconds: 2 } "
    "stages { forward_seconds: 1.5 backward_seconds: 2.5 } ";
constexpr char kSlow[] =
    "stages { forward_seconds: 1 backward_seconds: 2 } "
    "stages { forward_seconds: 3 backward_seconds: 5 } ";

absl::StatusOr<scenarios::ResolvedScenario> Resolved(
    const std::string& costs, uint32_t data,
    const std::string& schedule = "1f1b", bool post_validation = false) {
  Scenario scenario;
  EXPECT_TRUE(ParseTextProto("test",
                             "num_microbatches: 6 "
                             "parallelism { pipeline: 2 } costs { " +
                                 costs + " hop_seconds: 0.25 }",
                             &scenario)
                  .ok());
  scenario.set_schedule(schedule);
  if (post_validation) scenario.mutable_training()->set_post_validation(true);
  if (data > 0) scenario.mutable_parallelism()->set_data(data);
  return scenarios::ResolveScenario("test", scenario);
}

double Seconds(const std::string& costs, uint32_t data) {
  const auto scenario = Resolved(costs, data);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (!scenario.ok()) return 0;
  const auto result = Simulate(*scenario);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->batch_seconds() : 0;
}

std::string Replicas(const std::string& first, const std::string& second) {
  return std::string(kStages) + " replicas { " + first + " } replicas { " +
         second + " }";
}

// Given costs have no reduction: a step ends with the slowest replica.
TEST(GivenReplicasTest, AStepIsThatOfTheSlowestReplica) {
  const double fast = Seconds(kStages, 1), slow = Seconds(kSlow, 1);
  ASSERT_GT(slow, fast);
  EXPECT_EQ(Seconds(Replicas(kStages, kSlow), 2), slow);
  EXPECT_EQ(Seconds(Replicas(kSlow, kStages), 2), slow);
  EXPECT_EQ(Seconds(Replicas(kStages, kStages), 2), fast);
}

TEST(GivenReplicasTest, WithOneReplicaOnlyStagesCount) {
  EXPECT_EQ(Seconds(Replicas(kSlow, kSlow), 1), Seconds(kStages, 1));
  EXPECT_EQ(Seconds(Replicas(kSlow, kSlow), 0), Seconds(kStages, 1));
}

TEST(GivenReplicasTest, GpusHaveTheTimesOfTheirReplica) {
  const auto scenario = Resolved(Replicas(kStages, kSlow), 2);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  SimulateOptions options;
  options.keep_timeline = true;
  const auto result = Simulate(*scenario, options);
  ASSERT_TRUE(result.ok()) << result.status();
  const Timeline::Actions& actions = result->timeline().actions();
  ASSERT_EQ(actions.gpu_size(), 2 * 2 * 2 * 6);
  for (int i = 0; i < actions.gpu_size(); ++i) {
    if (actions.stage(i) != 1 || actions.op(i) != Timeline::Actions::FORWARD) {
      continue;
    }
    // GPUs in order of replica, then pipeline rank.
    EXPECT_NEAR(actions.end_seconds(i) - actions.start_seconds(i),
                actions.gpu(i) < 2 ? 1.5 : 3, 1e-12);
  }
}

TEST(GivenReplicasTest, TheFastEstimateAgrees) {
  const double slow = Seconds(Replicas(kStages, kSlow), 2);
  FastSimulator simulator;
  const auto scenario = Resolved(Replicas(kStages, kSlow), 2);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const auto fast = simulator.Estimate(*scenario);
  ASSERT_TRUE(fast.ok()) << fast.status();
  EXPECT_NEAR(fast->batch_seconds, slow, 1e-9 * slow);
}

// Nothing would keep the replicas together: there is no step time of both.
TEST(GivenReplicasTest, BatchesWithoutFlushAreRefused) {
  const std::string costs = Replicas(kStages, kSlow);
  EXPECT_THAT(
      std::string(Resolved(costs, 2, "pipedream-2bw").status().message()),
      HasSubstr("schedule is pipedream-2bw, which has no flush, expected a "
                "schedule with a flush for the 2 recorded replicas of costs"));
  EXPECT_TRUE(Resolved(costs, 1, "pipedream-2bw").ok());
  EXPECT_THAT(std::string(Resolved(costs, 2, "1f1b", true).status().message()),
              HasSubstr("training.post_validation is true"));
  EXPECT_TRUE(Resolved(costs, 1, "1f1b", true).ok());
}

TEST(GivenReplicasTest, ErrorsNameTheField) {
  EXPECT_THAT(
      std::string(Resolved(Replicas(kStages, kSlow), 3).status().message()),
      HasSubstr("is 3, expected 1 or 2, the recorded replicas"));
  EXPECT_THAT(std::string(Resolved(Replicas(kStages,
                                            "stages { forward_seconds: 1 "
                                            "backward_seconds: 1 }"),
                                   2)
                              .status()
                              .message()),
              HasSubstr("costs.replicas[1].stages has 1 entries, expected 2"));
  EXPECT_THAT(std::string(Resolved(kStages, 2).status().message()),
              HasSubstr("parallelism.data cannot be combined with costs"));
  EXPECT_THAT(
      std::string(Resolved("stages { forward_seconds: 1 backward_seconds: 1 "
                           "forward_factors: 2 forward_factors: 1 }",
                           1)
                      .status()
                      .message()),
      HasSubstr("costs.stages[0].forward_factors[1] is 1"));
}

}  // namespace weir::sim::given_replicas_test
