// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's batches of transfers are modeled twice: by the blocking
// transfers of the simulator, for any order, and by the linter, for the orders
// that Megatron-LM itself runs. Where both apply, they must agree on deadlocks.
#include "sim/graph/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "scenarios/scenario.h"
#include "schedules/interop/megatron.h"
#include "schedules/lint/lint.h"
#include "schedules/registry.h"
#include "sim/report/deadlock.h"
#include "sim/simulate.h"
#include "tests/sim/by_costs.h"
#include "tests/sim/given_scenario.h"

namespace weir::sim::exchange_test {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

absl::Status Blocking(const schedules::Schedule& schedule) {
  GivenScenario given;
  given.num_ranks = schedule.num_ranks;
  given.num_microbatches = schedule.num_microbatches;
  given.weight_gradient_seconds = {1};
  given.blocking = true;
  return SimulateSchedule(Resolve(given), schedule).status();
}

bool RunsInMegatron(const schedules::Schedule& schedule) {
  const schedules::LintReport report =
      schedules::LintSchedule(schedule, {.megatron = true});
  return std::none_of(report.findings.begin(), report.findings.end(),
                      [](const schedules::Finding& finding) {
                        return finding.rule == "megatron";
                      });
}

// The simulator is more lenient in two cases. With one stage per rank,
// Megatron-LM sends first and then receives in its warm-up, while the simulator
// does both at once; so a warm-up deeper than 1F1B's may deadlock only in
// Megatron-LM. With several stages on each of two ranks, both sends of a batch
// go to the same rank and may be mistaken for each other; the simulator matches
// them by name.
bool IsKnownToDiffer(const schedules::Schedule& schedule) {
  const int p = schedule.num_ranks;
  if (schedule.num_stages > p) return p == 2;
  const int total = schedule.total_microbatches();
  bool is_deeper = false, all_at_once = true;
  for (int rank = 0; rank < p; ++rank) {
    const auto& actions = schedule.rank_actions[rank];
    int leading = 0;
    while (actions[leading].op == schedules::Op::kForward) ++leading;
    is_deeper |= leading > p - rank;
    all_at_once &= leading == total;
  }
  return is_deeper && !all_at_once;
}

TEST(ExchangeTest, TheSimulatorHangsWhereMegatronsBatchesDo) {
  int num_run = 0, num_hang = 0, num_differ = 0;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    for (int p : {2, 3, 4, 5}) {
      for (int m : {1, 2, 3, 4, 6, 8, 10}) {
        for (int v : {1, 2, 3}) {
          const schedules::ScheduleSpec spec = {p, m, v, kind.flush ? 1 : 3};
          if (!kind.check(spec).ok()) continue;
          const schedules::Schedule schedule = kind.generate(spec);
          if (!schedules::MegatronProgram(schedule)) continue;
          const bool runs = RunsInMegatron(schedule);
          (runs ? num_run : num_hang) += 1;
          const absl::Status simulated = Blocking(schedule);
          if (simulated.ok() == runs) continue;
          ++num_differ;
          EXPECT_TRUE(simulated.ok() && IsKnownToDiffer(schedule))
              << kind.name << " p " << p << " m " << m << " v " << v << " "
              << simulated;
        }
      }
    }
  }
  EXPECT_GT(num_run, 100);
  EXPECT_GT(num_hang, num_differ);
}

// Uses the linter's wording. A transfer between two exchanges waits until both
// ranks reach them.
TEST(ExchangeTest, ADeadlockIsToldAsItsCycleOfWaits) {
  const absl::Status status =
      Blocking(schedules::GenerateSchedule("zb-h2", {4, 8}).value());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      status.message(),
      HasSubstr(
          "rank 0 waits at position 10 (0I1) for 1W0 at position 10 of rank 1; "
          "rank 1 waits at position 10 (1W0) for 0W1 at position 11 of "
          "rank 0"));
}

// Describes the deadlock of a schedule whose passes have collectives and host
// work.
std::string TextOfDeadlock(const schedules::Schedule& schedule, int tensor) {
  const schedules::Semantics semantics =
      schedules::InterpretSchedule(schedule).value();
  Costs costs = OneStage(1, 2);
  costs.stages[0].communication.output_bytes = 10;
  costs.stages[0].parameters.gradient_bytes = 100;
  costs.stages[0].launches.forward_seconds = 1.5;
  costs.stages[0].communication.forward_collectives = {{.bytes = 10}};
  costs.stages[0].communication.backward_collectives = {
      {.bytes = 10, .overlaps_weight_gradient = true}};
  costs.stages.resize(4, costs.stages[0]);
  costs.bucket_bytes = 30;
  scenarios::Placement placement{tensor, tensor, 4, {}};
  placement.gpus.resize(placement.num_gpus());
  std::iota(placement.gpus.begin(), placement.gpus.end(), 0);
  const scenarios::Network network(OneSwitch(placement.num_gpus(), 100, 0));
  Communication communication;
  communication.set_transfers(BLOCKING);
  communication.set_gradient_reduction(REDUCTION_OVERLAPPED);
  const PipelineInputs inputs{schedule, semantics, costs,
                              network,  placement, communication};
  const PipelineGraph graph = BuildPipelineGraph(inputs);
  const auto recording = RunTaskGraph(graph.tasks, network.links());
  EXPECT_FALSE(recording->complete());
  return DeadlockText(schedule, graph, *recording);
}

// Tensor groups, hosts and buckets add tasks to the cycle, but do not change
// the message.
TEST(ExchangeTest, CollectivesDoNotChangeTheCycleThatIsTold) {
  const schedules::Schedule schedule =
      schedules::GenerateSchedule("zb-h2", {4, 8}).value();
  EXPECT_THAT(TextOfDeadlock(schedule, 1), HasSubstr("waits at position"));
  // The message may name any replica.
  EXPECT_EQ(
      absl::StrReplaceAll(TextOfDeadlock(schedule, 2), {{" of replica 1", ""}}),
      TextOfDeadlock(schedule, 1));
}

// The shortest cycle has no action of two ranks, only their transfers.
TEST(ExchangeTest, ADeadlockOfTransfersNamesWhatTheyCarry) {
  Scenario scenario = scenarios::LoadScenario("gpt3-175b-selene").value();
  scenario.set_schedule("chimera");
  scenario.mutable_parallelism()->set_tensor(2);
  scenario.mutable_parallelism()->set_data(1);
  scenario.mutable_batch()->set_global_batch_size(28);
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_THAT(std::string(Simulate(*resolved).status().message()),
              ContainsRegex("wait for each other: the output of "
                            "[0-9]+[FB][0-9]+ at position [0-9]+ of rank [0-9]+"
                            " and the output of"));
}

}  // namespace weir::sim::exchange_test
