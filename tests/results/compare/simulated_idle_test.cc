// SPDX-License-Identifier: Apache-2.0
// Checks that every idle second of a simulation has a cause, with every
// schedule.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/compare/execution_comparison.h"
#include "results/compare/idle_causes.h"
#include "schedules/registry.h"
#include "sim/simulate.h"
#include "tests/sim/given_scenario.h"

namespace weir::results::simulated_idle_test {

sim::GivenScenario ScenarioOf(const schedules::ScheduleKind& kind,
                              int num_chunks, int num_microbatches,
                              double hop_seconds) {
  sim::GivenScenario given;
  given.schedule = std::string(kind.name);
  given.num_chunks = num_chunks;
  given.num_microbatches = num_microbatches;
  given.num_batches = kind.flush ? 0 : 3;
  given.weight_gradient_seconds = {1};
  given.hop_seconds = hop_seconds;
  return given;
}

// Simulates the first shape that the kind accepts.
absl::StatusOr<Result> SimulateKind(const schedules::ScheduleKind& kind,
                                    double hop_seconds) {
  absl::Status last;
  for (const int num_microbatches : {8, 4, 12}) {
    for (const int num_chunks : {1, 2}) {
      sim::SimulateOptions options;
      options.keep_timeline = true;
      auto result =
          sim::Simulate(sim::Resolve(ScenarioOf(kind, num_chunks,
                                                num_microbatches, hop_seconds)),
                        options);
      if (result.ok()) return result;
      last = result.status();
    }
  }
  return last;
}

class SimulatedIdleTest : public ::testing::TestWithParam<double> {};

INSTANTIATE_TEST_SUITE_P(Hops, SimulatedIdleTest,
                         ::testing::Values(0, 0.25, 1.75));

TEST_P(SimulatedIdleTest, CausesOfEveryScheduleAddUp) {
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    const auto result = SimulateKind(kind, GetParam());
    ASSERT_TRUE(result.ok()) << kind.name << ": " << result.status();
    const auto events = PipelineEventsOf("simulated", *result);
    ASSERT_TRUE(events.ok()) << events.status();
    const double makespan = result->makespan_seconds();
    EXPECT_EQ(events->makespan_seconds, makespan) << kind.name;
    const std::vector<RankIdle> idle = FindIdleCauses(*events);
    for (size_t rank = 0; rank < idle.size(); ++rank) {
      const RankResult& simulated = result->ranks(events->gpus[rank]);
      const std::string where =
          std::string(kind.name) + " rank " + std::to_string(rank);
      EXPECT_NEAR(idle[rank].busy_seconds, simulated.busy_seconds(),
                  1e-9 * makespan)
          << where;
      EXPECT_NEAR(idle[rank].busy_seconds + idle[rank].idle_seconds(), makespan,
                  1e-9 * makespan)
          << where;
      // A simulated rank starts as soon as it can.
      EXPECT_NEAR(idle[rank].of(IdleCause::kOther), 0, 1e-9 * makespan)
          << where;
      // The simulator computes the same from its graph.
      EXPECT_NEAR(
          idle[rank].of(IdleCause::kWire) + idle[rank].of(IdleCause::kHost),
          simulated.exposed_communication_seconds(), 1e-9 * makespan)
          << where;
    }
  }
}

TEST(SimulatedReplayTest, AResultAgainstItselfHasNoErrors) {
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    const auto result = SimulateKind(kind, 0.25);
    ASSERT_TRUE(result.ok()) << kind.name << ": " << result.status();
    const auto compared = CompareExecution("a", *result, "b", *result);
    ASSERT_TRUE(compared.ok()) << compared.status();
    EXPECT_EQ(compared->actions.size(),
              static_cast<size_t>(result->timeline().actions().gpu_size()));
    for (const ActionErrors& errors : compared->errors) {
      EXPECT_EQ(errors.durations.worst, 0) << kind.name;
      EXPECT_EQ(errors.starts.worst, 0) << kind.name;
      EXPECT_EQ(errors.ends.worst, 0) << kind.name;
    }
    EXPECT_EQ(compared->clocks.num_early, 0) << kind.name;
    for (const JudgedError& judged : JudgedErrors(*compared)) {
      EXPECT_EQ(judged.error, 0) << kind.name << " " << judged.what;
    }
  }
}

}  // namespace weir::results::simulated_idle_test
