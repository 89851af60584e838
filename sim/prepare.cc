// SPDX-License-Identifier: Apache-2.0
#include "sim/prepare.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "schedules/pair_passes.h"
#include "schedules/registry.h"
#include "schedules/repeat_batch.h"
#include "schedules/source.h"
#include "sim/costs/schedule_costs.h"
#include "sim/costs/stage_costs.h"
#include "sim/report/deadlock.h"

namespace weir::sim {
namespace {

// A run without flush is extended until its steady state is found, but not
// beyond this many tasks or batches.
constexpr double kMaxSteadyTasks = 4e6;
constexpr int kMaxSteadyBatches = 600;

// Returns the shape of a scenario's schedule and, if the schedule orders its
// passes by costs, the costs of its stages.
absl::StatusOr<schedules::ScheduleSpec> SpecOf(
    const scenarios::ResolvedScenario& scenario,
    const scenarios::Network& network, int num_batches) {
  const Parallelism& parallelism = scenario.scenario.parallelism();
  schedules::ScheduleSpec spec;
  spec.num_ranks = static_cast<int>(parallelism.pipeline());
  spec.num_microbatches = scenario.num_microbatches;
  spec.num_chunks = static_cast<int>(parallelism.chunks());
  spec.num_batches = num_batches;
  if (!schedules::OrdersByCosts(scenario.scenario.schedule())) return spec;
  const int num_stages = spec.num_ranks * spec.num_chunks;
  ASSIGN_OR_RETURN(
      const Costs costs,
      ComputeCosts(scenario, num_stages, std::vector<int>(num_stages, 1)));
  spec.costs = PassCostsOf(scenario, network, costs);
  return spec;
}

}  // namespace

scenarios::Network NetworkOf(const scenarios::ResolvedScenario& scenario) {
  return scenario.given_costs ? scenarios::Network::OfGivenCosts(
                                    scenario.placement.num_gpus(),
                                    scenario.scenario.costs().hop_seconds())
                              : scenarios::Network(scenario.cluster);
}

absl::StatusOr<bool> PostValidates(
    const scenarios::ResolvedScenario& scenario) {
  const std::string& name = scenario.scenario.schedule();
  const Training& training = scenario.scenario.training();
  if (scenario.scenario.parallelism().pipeline() < 2) return false;
  if (!training.has_post_validation() &&
      (!scenario.runtime.post_validates_steps() || training.fully_sharded())) {
    return false;
  }
  if (training.has_post_validation() && !training.post_validation()) {
    return false;
  }
  ASSIGN_OR_RETURN(const bool flush, schedules::ScheduleFlushes(name));
  if (!flush || training.has_post_validation()) return flush;
  return schedules::SplitsBackward(name);
}

absl::StatusOr<schedules::Schedule> PlannedScheduleOf(
    const scenarios::ResolvedScenario& scenario,
    const scenarios::Network& network, int num_batches) {
  ASSIGN_OR_RETURN(const bool repeats, PostValidates(scenario));
  ASSIGN_OR_RETURN(const schedules::ScheduleSpec spec,
                   SpecOf(scenario, network, repeats ? 1 : num_batches));
  ASSIGN_OR_RETURN(schedules::Schedule schedule,
                   schedules::GetSchedule(scenario.scenario.schedule(), spec));
  if (scenario.scenario.communication().overlap_expert_exchange()) {
    schedules::PairBackwardsWithForwards(&schedule);
  }
  return schedule;
}

absl::StatusOr<schedules::Schedule> ScheduleOf(
    const scenarios::ResolvedScenario& scenario,
    const scenarios::Network& network, int num_batches) {
  ASSIGN_OR_RETURN(const bool repeats, PostValidates(scenario));
  ASSIGN_OR_RETURN(schedules::Schedule schedule,
                   PlannedScheduleOf(scenario, network, num_batches));
  if (!repeats || schedule.forward_only) return schedule;
  return schedules::RepeatBatch(schedule, num_batches);
}

bool IsGeneratedFromShape(const scenarios::ResolvedScenario& scenario) {
  const std::string& name = scenario.scenario.schedule();
  return !schedules::IsScheduleFile(name) && !schedules::OrdersByCosts(name);
}

std::vector<int> VersionsOfStages(const schedules::Semantics& semantics) {
  return {semantics.max_live_versions.begin(),
          semantics.max_live_versions.end()};
}

absl::StatusOr<int> GivenBatches(const scenarios::ResolvedScenario& scenario) {
  const std::string& name = scenario.scenario.schedule();
  ASSIGN_OR_RETURN(const bool flush, schedules::ScheduleFlushes(name));
  ASSIGN_OR_RETURN(const bool repeats, PostValidates(scenario));
  if (repeats) return 0;
  const int given = static_cast<int>(scenario.scenario.num_batches());
  // The file determines its batches.
  if (flush || given > 0 || schedules::IsScheduleFile(name))
    return std::max(given, 1);
  return 0;
}

absl::StatusOr<int> FirstBatches(const scenarios::ResolvedScenario& scenario) {
  ASSIGN_OR_RETURN(const bool repeats, PostValidates(scenario));
  if (repeats) return kFirstOverlappingBatches;
  return InitialBatches(scenario.scenario.parallelism().pipeline(),
                        scenario.num_microbatches);
}

absl::Status Deadlock(const schedules::Schedule& schedule,
                      const PipelineGraph& graph, const Recording& recording,
                      bool blocking) {
  return absl::FailedPreconditionError(absl::StrCat(
      "deadlock: ", schedule.name,
      blocking ? " cannot run with blocking transfers: "
               : " cannot run, its optimizer steps wait for other ranks' "
                 "gradients: ",
      DeadlockText(schedule, graph, recording),
      blocking ? "; use overlapped transfers"
               : "; use overlapped gradient reductions"));
}

double MakespanOf(const Recording& recording) {
  double makespan = 0;
  for (double end : recording.end_seconds()) makespan = std::max(makespan, end);
  return makespan;
}

bool ShowsEnough(const Window& window, int num_batches, double num_tasks) {
  return window.steady || window.stationary ||
         2 * num_batches > kMaxSteadyBatches || 2 * num_tasks > kMaxSteadyTasks;
}

}  // namespace weir::sim
