// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "scenarios/network.h"
#include "schedules/registry.h"
#include "schedules/semantics.h"
#include "schedules/source.h"
#include "schedules/validate.h"
#include "sim/engine.h"
#include "sim/fill_result.h"
#include "sim/groups.h"
#include "sim/pipeline_graph.h"
#include "sim/schedule_costs.h"
#include "sim/stage_costs.h"
#include "sim/standstill.h"
#include "sim/window.h"

namespace weir {
namespace {

// A run without flush is made longer until its steady state shows, but not
// beyond this many tasks or batches.
constexpr double kMaxSteadyTasks = 4e6;
constexpr int kMaxSteadyBatches = 600;

// A task takes about 80 bytes, and has a number of 31 bits.
constexpr double kMaxTasks = 1e8;

std::vector<int> VersionsOfStages(const Semantics& semantics) {
  return {semantics.max_live_versions.begin(),
          semantics.max_live_versions.end()};
}

// Names the actions that wait for each other.
absl::Status Deadlock(const SimulatedRun& run, bool blocking) {
  return absl::FailedPreconditionError(absl::StrCat(
      "deadlock: ", run.schedule.name,
      blocking ? " cannot run with blocking transfers: "
               : " cannot run, its optimizer steps wait for other ranks' "
                 "gradients: ",
      StandstillText(run.schedule, run.graph, run.recording),
      blocking ? "; use overlapped transfers"
               : "; use overlapped gradient reductions"));
}

absl::Status CheckTasks(const ResolvedScenario& scenario, double num_tasks) {
  if (num_tasks <= kMaxTasks) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: is too large: %.3g tasks (actions, transfers, collectives), about "
      "%s, expected at most %.3g: fewer microbatches, batches or replicas",
      scenario.label, num_tasks, FormatBytes(80 * num_tasks), kMaxTasks));
}

// An automatic schedule is ordered by the costs of the stages it will have.
absl::StatusOr<ScheduleSpec> SpecOf(const ResolvedScenario& scenario,
                                    const Network& network, int num_batches) {
  const Parallelism& parallelism = scenario.scenario.parallelism();
  ScheduleSpec spec;
  spec.num_ranks = static_cast<int>(parallelism.pipeline());
  spec.num_microbatches = scenario.num_microbatches;
  spec.num_chunks = static_cast<int>(parallelism.chunks());
  spec.num_batches = num_batches;
  if (IsScheduleFile(scenario.scenario.schedule())) return spec;
  ASSIGN_OR_RETURN(const ScheduleKind* kind,
                   FindScheduleKind(scenario.scenario.schedule()));
  if (!kind->uses_costs) return spec;
  const int num_stages = spec.num_ranks * spec.num_chunks;
  ASSIGN_OR_RETURN(
      const Costs costs,
      ComputeCosts(scenario, num_stages, std::vector<int>(num_stages, 1)));
  spec.costs = PassCostsOf(scenario, network, costs);
  return spec;
}

// Everything up to the task graph.
absl::StatusOr<SimulatedRun> Prepare(const ResolvedScenario& scenario,
                                     const Network& network,
                                     Schedule schedule) {
  SimulatedRun run;
  run.schedule = std::move(schedule);
  RETURN_IF_ERROR(ValidateSchedule(run.schedule));
  ASSIGN_OR_RETURN(run.semantics, InterpretSchedule(run.schedule));
  ASSIGN_OR_RETURN(run.costs, ComputeCosts(scenario, run.schedule.num_stages,
                                           VersionsOfStages(run.semantics)));
  RETURN_IF_ERROR(ApplySchedule(scenario, network, run.schedule, &run.costs));
  const PipelineInputs inputs = InputsOf(scenario, network, run);
  RETURN_IF_ERROR(CheckTasks(scenario, EstimateTasks(inputs)));
  run.graph = BuildPipelineGraph(inputs);
  return run;
}

absl::StatusOr<SimulatedRun> RunOnce(const ResolvedScenario& scenario,
                                     const Network& network, Schedule schedule,
                                     const SimulateOptions& options) {
  ASSIGN_OR_RETURN(SimulatedRun run,
                   Prepare(scenario, network, std::move(schedule)));
  ASSIGN_OR_RETURN(run.recording, RunTaskGraph(run.graph.tasks, network.links(),
                                               {options.progress}));
  if (!run.recording.complete()) {
    return Deadlock(run,
                    scenario.scenario.communication().transfers() == BLOCKING);
  }
  for (double end : run.recording.end_seconds()) {
    run.makespan_seconds = std::max(run.makespan_seconds, end);
  }
  run.window =
      FindWindow(run.schedule, run.graph, run.recording, run.makespan_seconds);
  return run;
}

absl::StatusOr<Schedule> ScheduleOf(const ResolvedScenario& scenario,
                                    const Network& network, int num_batches) {
  ASSIGN_OR_RETURN(const ScheduleSpec spec,
                   SpecOf(scenario, network, num_batches));
  return GetSchedule(scenario.scenario.schedule(), spec);
}

absl::StatusOr<SimulatedRun> RunBatches(const ResolvedScenario& scenario,
                                        const Network& network, int num_batches,
                                        const SimulateOptions& options) {
  ASSIGN_OR_RETURN(Schedule schedule,
                   ScheduleOf(scenario, network, num_batches));
  return RunOnce(scenario, network, std::move(schedule), options);
}

// How many batches to begin with; 0: until the steady state shows.
absl::StatusOr<int> GivenBatches(const ResolvedScenario& scenario) {
  const std::string& name = scenario.scenario.schedule();
  ASSIGN_OR_RETURN(const bool flush, ScheduleFlushes(name));
  const int given = static_cast<int>(scenario.scenario.num_batches());
  // A file brings its own batches.
  if (flush || given > 0 || IsScheduleFile(name)) return std::max(given, 1);
  return 0;
}

int FirstBatches(const ResolvedScenario& scenario) {
  return InitialBatches(scenario.scenario.parallelism().pipeline(),
                        scenario.num_microbatches);
}

// Without flush: as many batches as it takes to see the steady state.
absl::StatusOr<SimulatedRun> RunToSteadyState(const ResolvedScenario& scenario,
                                              const Network& network,
                                              const SimulateOptions& options) {
  ASSIGN_OR_RETURN(const int given, GivenBatches(scenario));
  if (given > 0) return RunBatches(scenario, network, given, options);
  int num_batches = FirstBatches(scenario);
  while (true) {
    ASSIGN_OR_RETURN(SimulatedRun run,
                     RunBatches(scenario, network, num_batches, options));
    if (run.window.steady || run.window.stationary ||
        2 * num_batches > kMaxSteadyBatches ||
        2.0 * run.graph.tasks.num_tasks() > kMaxSteadyTasks) {
      return run;
    }
    num_batches *= 2;
  }
}

Network NetworkOf(const ResolvedScenario& scenario) {
  return scenario.textbook
             ? Network::Textbook(scenario.placement.num_gpus(),
                                 scenario.scenario.textbook().hop_seconds())
             : Network(scenario.cluster);
}

}  // namespace

absl::StatusOr<Result> Simulate(const ResolvedScenario& scenario,
                                const SimulateOptions& options) {
  const Network network = NetworkOf(scenario);
  ASSIGN_OR_RETURN(const SimulatedRun run,
                   RunToSteadyState(scenario, network, options));
  Result result = MakeResult(scenario, network, run, options);
  if (OrdersTransfers(scenario.scenario.schedule())) {
    result.add_warnings(absl::StrCat(
        scenario.scenario.schedule(),
        ": its own order of transfers is checked but not simulated: each is "
        "sent when what it carries is there"));
  }
  return result;
}

absl::StatusOr<uint64_t> FingerprintOf(const ResolvedScenario& scenario) {
  const Network network = NetworkOf(scenario);
  ASSIGN_OR_RETURN(const int given, GivenBatches(scenario));
  ASSIGN_OR_RETURN(Schedule schedule,
                   ScheduleOf(scenario, network,
                              given > 0 ? given : FirstBatches(scenario)));
  ASSIGN_OR_RETURN(const SimulatedRun run,
                   Prepare(scenario, network, std::move(schedule)));
  const TaskGraph& tasks = run.graph.tasks;
  std::vector<double> numbers;
  for (int32_t i = 0; i < tasks.num_tasks(); ++i) {
    numbers.push_back(tasks.amount(i));
    for (int32_t next : tasks.successors(i)) numbers.push_back(next);
  }
  for (const GpuPair& pair : tasks.pairs) {
    numbers.push_back(pair.route.latency_seconds);
  }
  for (const auto& factors : tasks.slowdowns.factors) {
    numbers.insert(numbers.end(), factors.begin(), factors.end());
  }
  for (const std::vector<double>& curve : tasks.slowdowns.curves) {
    numbers.insert(numbers.end(), curve.begin(), curve.end());
  }
  for (const Link& link : network.links()) {
    numbers.push_back(link.bytes_per_second);
  }
  return absl::HashOf(numbers);
}

absl::StatusOr<Schedule> ScheduleOfScenario(const ResolvedScenario& scenario,
                                            int num_batches) {
  return ScheduleOf(scenario, NetworkOf(scenario), num_batches);
}

LoneTransfer TransferAlone(const ResolvedScenario& scenario, int from_rank,
                           int to_rank, double bytes) {
  const Network network = NetworkOf(scenario);
  const int from = scenario.placement.gpu(0, from_rank, 0);
  const int to = scenario.placement.gpu(0, to_rank, 0);
  const Route route = network.RouteBetween(from, to);
  if (route.links.empty()) return {route.latency_seconds, 0};
  const DeviceProfile& device = scenario.device;
  const bool plain = scenario.cluster.plain_links();
  const bool model = device.has_collectives() && !plain;
  TaskGraph tasks;
  Ways ways(network, model ? &device.collectives() : nullptr,
            device.links_size() > 0 && !plain ? &device : nullptr, &tasks);
  const SendCost send = ways.SendBetween(from, to, bytes, 0);
  LoneTransfer alone;
  alone.latency_seconds = tasks.pairs[send.pair].route.latency_seconds;
  for (int32_t link : route.links) {
    alone.link_seconds =
        std::max(alone.link_seconds,
                 send.bytes / network.links()[link].bytes_per_second);
  }
  return alone;
}

absl::StatusOr<Result> SimulateSchedule(const ResolvedScenario& scenario,
                                        const Schedule& schedule,
                                        const SimulateOptions& options) {
  const Network network = NetworkOf(scenario);
  ASSIGN_OR_RETURN(const SimulatedRun run,
                   RunOnce(scenario, network, schedule, options));
  return MakeResult(scenario, network, run, options);
}

}  // namespace weir
