// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "scenarios/cluster/network.h"
#include "schedules/semantics.h"
#include "schedules/source.h"
#include "schedules/validate.h"
#include "sim/costs/schedule_costs.h"
#include "sim/costs/stage_costs.h"
#include "sim/engine/engine.h"
#include "sim/engine/graph_runner.h"
#include "sim/engine/longest_path.h"
#include "sim/fill_result.h"
#include "sim/graph/communication_lowering.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/prepare.h"
#include "sim/report/window.h"
#include "sim/run_size.h"

namespace weir::sim {
namespace {

// Prepares the first run that Simulate makes.
absl::StatusOr<SimulatedRun> PrepareFirst(
    const scenarios::ResolvedScenario& scenario,
    const scenarios::Network& network) {
  ASSIGN_OR_RETURN(const int given, GivenBatches(scenario));
  ASSIGN_OR_RETURN(const int first, FirstBatches(scenario));
  const int num_batches = given > 0 ? given : first;
  RETURN_IF_ERROR(CheckFullRun(scenario, num_batches));
  ASSIGN_OR_RETURN(schedules::Schedule schedule,
                   ScheduleOf(scenario, network, num_batches));
  return PrepareRun(scenario, network, std::move(schedule));
}

// Returns true if a pass overlaps with the next one of its rank.
bool HasPairs(const schedules::Schedule& schedule) {
  for (const auto& actions : schedule.rank_actions) {
    for (const schedules::Action& action : actions) {
      if (action.overlaps_next) return true;
    }
  }
  return false;
}

absl::Status CheckComplete(const scenarios::ResolvedScenario& scenario,
                           const SimulatedRun& run) {
  if (run.recording.complete()) return absl::OkStatus();
  return Deadlock(run.schedule, run.graph, run.recording,
                  scenario.scenario.communication().transfers() == BLOCKING);
}

absl::StatusOr<SimulatedRun> RunOnce(
    const scenarios::ResolvedScenario& scenario,
    const scenarios::Network& network, schedules::Schedule schedule,
    const SimulateOptions& options) {
  ASSIGN_OR_RETURN(SimulatedRun run,
                   PrepareRun(scenario, network, std::move(schedule)));
  if (options.runner != nullptr) {
    ASSIGN_OR_RETURN(run.recording,
                     options.runner->Run(run.graph.tasks, network.links()));
  } else {
    ASSIGN_OR_RETURN(
        run.recording,
        RunTaskGraph(run.graph.tasks, network.links(), {options.progress}));
  }
  RETURN_IF_ERROR(FinishRun(scenario, &run));
  return run;
}

absl::StatusOr<SimulatedRun> Run(const scenarios::ResolvedScenario& scenario,
                                 const scenarios::Network& network,
                                 const SimulateOptions& options) {
  const auto run_batches =
      [&](int num_batches) -> absl::StatusOr<SimulatedRun> {
    RETURN_IF_ERROR(CheckFullRun(scenario, num_batches));
    ASSIGN_OR_RETURN(schedules::Schedule schedule,
                     ScheduleOf(scenario, network, num_batches));
    return RunOnce(scenario, network, std::move(schedule), options);
  };
  return RunToSteadyState(scenario, run_batches);
}

}  // namespace

absl::StatusOr<SimulatedRun> PrepareRun(
    const scenarios::ResolvedScenario& scenario,
    const scenarios::Network& network, schedules::Schedule schedule) {
  SimulatedRun run;
  run.schedule = std::move(schedule);
  RETURN_IF_ERROR(schedules::ValidateSchedule(run.schedule));
  ASSIGN_OR_RETURN(run.semantics, schedules::InterpretSchedule(run.schedule));
  ASSIGN_OR_RETURN(run.costs, ComputeCosts(scenario, run.schedule.num_stages,
                                           VersionsOfStages(run.semantics)));
  RETURN_IF_ERROR(ApplySchedule(scenario, network, run.schedule, &run.costs));
  const PipelineInputs inputs = InputsOf(scenario, network, run);
  RETURN_IF_ERROR(CheckTasks(scenario, EstimateTasks(inputs),
                             scenario.placement.num_gpus()));
  run.graph = BuildPipelineGraph(inputs);
  return run;
}

absl::Status FinishRun(const scenarios::ResolvedScenario& scenario,
                       SimulatedRun* run) {
  RETURN_IF_ERROR(CheckComplete(scenario, *run));
  run->makespan_seconds = MakespanOf(run->recording);
  run->window = FindWindow(run->schedule, run->graph, run->recording,
                           run->makespan_seconds);
  run->window.rollback_seconds =
      RollbackSeconds(run->schedule, run->graph, run->window,
                      scenario.scenario.training().rollback_fraction());
  return absl::OkStatus();
}

absl::StatusOr<Result> Simulate(const scenarios::ResolvedScenario& scenario,
                                const SimulateOptions& options) {
  const scenarios::Network network = NetworkOf(scenario);
  ASSIGN_OR_RETURN(const SimulatedRun run, Run(scenario, network, options));
  Result result = MakeResult(scenario, network, run, options);
  if (scenario.scenario.communication().overlap_expert_exchange() &&
      !HasPairs(run.schedule)) {
    result.add_warnings(
        absl::StrCat("overlapped exchanges of experts have no effect: in ",
                     scenario.scenario.schedule(),
                     ", no forward follows a backward of another microbatch"));
  }
  if (schedules::OrdersTransfers(scenario.scenario.schedule())) {
    result.add_warnings(absl::StrCat(
        scenario.scenario.schedule(),
        ": the order of transfers in the file is checked but not simulated: "
        "every transfer is sent as soon as its data is ready"));
  }
  return result;
}

absl::StatusOr<ScheduleSlack> SlackOfScenario(
    const scenarios::ResolvedScenario& scenario,
    const SimulateOptions& options) {
  const scenarios::Network network = NetworkOf(scenario);
  ASSIGN_OR_RETURN(const SimulatedRun run, Run(scenario, network, options));
  ScheduleSlack slack =
      SlackOfRun(run.schedule, run.graph, run.recording, network.links());
  slack.batch_seconds = run.window.batch_seconds();
  slack.num_batches = run.schedule.num_batches;
  slack.chunks = std::max(run.schedule.num_stages / run.schedule.num_ranks, 1);
  return slack;
}

absl::StatusOr<ReplayTasks> ReplayTasksOfScenario(
    const scenarios::ResolvedScenario& scenario,
    const SimulateOptions& options) {
  const scenarios::Network network = NetworkOf(scenario);
  ASSIGN_OR_RETURN(const SimulatedRun run, Run(scenario, network, options));
  return ReplayTasksOf(InputsOf(scenario, network, run), run.graph,
                       run.recording, run.window);
}

absl::StatusOr<schedules::Schedule> CheckSimulation(
    const scenarios::ResolvedScenario& scenario) {
  const scenarios::Network network = NetworkOf(scenario);
  ASSIGN_OR_RETURN(SimulatedRun run, PrepareFirst(scenario, network));
  // Which tasks can run does not depend on how long flows take.
  ASSIGN_OR_RETURN(run.recording,
                   LongestPath(run.graph.tasks, network.links()));
  RETURN_IF_ERROR(CheckComplete(scenario, run));
  return std::move(run.schedule);
}

std::string MarginWarning(double part) {
  return absl::StrCat("the GPU with the highest peak uses ",
                      FormatPercent(part),
                      " of its memory and may run out of it: the upper end of "
                      "the interval of the peak is larger than the memory");
}

absl::StatusOr<schedules::Schedule> ScheduleOfScenario(
    const scenarios::ResolvedScenario& scenario, int num_batches) {
  return PlannedScheduleOf(scenario, NetworkOf(scenario), num_batches);
}

UncontendedTransfer TransferAlone(const scenarios::ResolvedScenario& scenario,
                                  int from_rank, int to_rank, double bytes) {
  const scenarios::Network network = NetworkOf(scenario);
  const int from = scenario.placement.gpu(0, from_rank, 0);
  const int to = scenario.placement.gpu(0, to_rank, 0);
  const scenarios::Route route = network.RouteBetween(from, to);
  if (route.links.empty()) return {route.latency_seconds, 0};
  const DeviceProfile& device = scenario.device;
  const bool plain = scenario.cluster.plain_links();
  const bool model = device.has_collectives() && !plain;
  TaskGraph tasks;
  CommunicationLowering ways(
      network, model ? &device.collectives() : nullptr,
      device.links_size() > 0 && !plain ? &device : nullptr, &tasks);
  const SendCost send = ways.SendBetween(from, to, bytes, 0);
  UncontendedTransfer alone;
  alone.latency_seconds = tasks.pairs[send.pair].route.latency_seconds;
  for (int32_t link : route.links) {
    alone.link_seconds =
        std::max(alone.link_seconds,
                 send.bytes / network.links()[link].bytes_per_second);
  }
  return alone;
}

absl::StatusOr<Result> SimulateSchedule(
    const scenarios::ResolvedScenario& scenario,
    const schedules::Schedule& schedule, const SimulateOptions& options) {
  const scenarios::Network network = NetworkOf(scenario);
  ASSIGN_OR_RETURN(const SimulatedRun run,
                   RunOnce(scenario, network, schedule, options));
  return MakeResult(scenario, network, run, options);
}

}  // namespace weir::sim
