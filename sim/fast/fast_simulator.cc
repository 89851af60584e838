// SPDX-License-Identifier: Apache-2.0
#include "sim/fast/fast_simulator.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "schedules/source.h"
#include "sim/costs/schedule_costs.h"
#include "sim/engine/engine.h"
#include "sim/engine/graph_runner.h"
#include "sim/engine/longest_path.h"
#include "sim/fast/fast_inputs.h"
#include "sim/fast/fast_run.h"
#include "sim/fast/joined_batches.h"
#include "sim/fast/short_batches.h"
#include "sim/prepare.h"
#include "sim/report/window.h"
#include "sim/run_size.h"

namespace weir::sim {
namespace {

// Trying more numbers of periods would cost as much as the whole run.
constexpr int kMostTries = 2;

}  // namespace

class FastSimulator::Impl {
 public:
  explicit Impl(GraphRunner* runner)
      : own_runner_(runner == nullptr ? std::make_unique<GraphRunner>()
                                      : nullptr),
        runner_(runner == nullptr ? *own_runner_ : *runner) {}

  absl::StatusOr<FastEstimate> Estimate(
      const scenarios::ResolvedScenario& scenario, bool with_parts) {
    const std::shared_ptr<const scenarios::Network> network =
        inputs_.NetworkOf(scenario);
    const auto run_batches = [&](int num_batches) -> absl::StatusOr<FastRun> {
      return RunBatches(scenario, network, num_batches);
    };
    ASSIGN_OR_RETURN(std::optional<FastEstimate> joined,
                     EstimateJoined(scenario, network));
    if (joined.has_value()) return *std::move(joined);
    ASSIGN_OR_RETURN(std::optional<FastRun> run,
                     RunShortBatches(scenario, network));
    if (!run.has_value()) {
      ASSIGN_OR_RETURN(run, RunToSteadyState(scenario, run_batches));
    }
    FastEstimate estimate = EstimateOf(scenario, *run);
    if (with_parts) FillParts(scenario, *run, &estimate);
    return estimate;
  }

 private:
  // Returns the estimate of a run without flush whose batches may be joined;
  // std::nullopt: see joined_batches.h, or its times are not periodic.
  absl::StatusOr<std::optional<FastEstimate>> EstimateJoined(
      const scenarios::ResolvedScenario& scenario,
      const std::shared_ptr<const scenarios::Network>& network) {
    const std::optional<FastEstimate> none;
    ASSIGN_OR_RETURN(const int given, GivenBatches(scenario));
    if (given > 0 || !scenario.given_costs || !IsGeneratedFromShape(scenario)) {
      return none;
    }
    ASSIGN_OR_RETURN(int num_batches, FirstBatches(scenario));
    // One batch has the policies of all, and is enough to refuse a shape.
    ASSIGN_OR_RETURN(schedules::Schedule shape,
                     weir::sim::ScheduleOf(scenario, *network, 1));
    if (!MayJoinBatches(shape)) return none;
    for (auto& actions : shape.rank_actions) actions.clear();
    for (;; num_batches *= 2) {
      shape.num_batches = num_batches;
      ASSIGN_OR_RETURN(std::optional<FastRun> run,
                       RunJoined(scenario, network, shape));
      if (!run.has_value()) return none;
      const Window window =
          WindowOfJoined(shape, *run->program->shortened, *run->steadiness,
                         run->graph, run->recording, run->window.end_seconds);
      const double num_tasks = TasksOfJoined(
          run->graph, run->program->schedule(), shape.total_microbatches());
      if (!ShowsEnough(window, num_batches, num_tasks)) continue;
      FastEstimate estimate = EstimateOf(scenario, *run);
      estimate.batch_seconds = window.batch_seconds();
      estimate.num_microbatches = shape.total_microbatches();
      return std::optional<FastEstimate>(std::move(estimate));
    }
  }

  // Runs the joined batches of a schedule of this shape, shortened. Returns
  // std::nullopt if they may not be joined or do not repeat.
  absl::StatusOr<std::optional<FastRun>> RunJoined(
      const scenarios::ResolvedScenario& scenario,
      const std::shared_ptr<const scenarios::Network>& network,
      const schedules::Schedule& shape) {
    ASSIGN_OR_RETURN(const bool repeats, schedules::RepeatsMicrobatches(
                                             scenario.scenario.schedule()));
    const int total = shape.total_microbatches();
    int left_out =
        repeats ? MicrobatchesNotGenerated(total, shape.num_ranks) : 0;
    while (true) {
      schedules::Schedule joined;
      if (left_out > 0) {
        scenarios::ResolvedScenario fewer = scenario;
        fewer.num_microbatches = total - left_out;
        ASSIGN_OR_RETURN(joined, weir::sim::ScheduleOf(fewer, *network, 1));
      } else {
        ASSIGN_OR_RETURN(joined, weir::sim::ScheduleOf(scenario, *network,
                                                       shape.num_batches));
      }
      JoinBatches(&joined);
      absl::string_view why_not;
      ASSIGN_OR_RETURN(std::optional<FastRun> run,
                       RunShortened(scenario, network, joined, &why_not));
      const bool joins = run.has_value() && !run->reduced() &&
                         AreOnlyPasses(joined, run->graph, run->costs) &&
                         run->steadiness->cuts.size() == 1 &&
                         run->program->shortened->num_lanes == 1;
      if (joins && run->Repeats(left_out)) {
        run->AddLeftOut(left_out);
        return run;
      }
      if (left_out == 0) return std::optional<FastRun>();
      // Times may repeat only with all microbatches.
      left_out = 0;
    }
  }

  // Runs a schedule without flush with fewer microbatches per batch. Returns
  // std::nullopt if short_batches.h does not apply, or if the times do not
  // repeat in and after batches.
  absl::StatusOr<std::optional<FastRun>> RunShortBatches(
      const scenarios::ResolvedScenario& scenario,
      const std::shared_ptr<const scenarios::Network>& network) {
    std::optional<FastRun> none;
    const std::string& name = scenario.scenario.schedule();
    ASSIGN_OR_RETURN(const int given, GivenBatches(scenario));
    if (given > 0 || !IsGeneratedFromShape(scenario)) return none;
    ASSIGN_OR_RETURN(const bool repeats, schedules::RepeatsMicrobatches(name));
    if (!repeats) return none;
    ASSIGN_OR_RETURN(const int num_batches, FirstBatches(scenario));
    int num_in_flight =
        static_cast<int>(scenario.scenario.parallelism().pipeline());
    if (MicrobatchesKept(scenario.num_microbatches, num_in_flight, 0) == 0) {
      return none;
    }
    // One batch of a few microbatches has the policies of all.
    scenarios::ResolvedScenario shortest = scenario;
    shortest.num_microbatches = num_in_flight;
    ASSIGN_OR_RETURN(const schedules::Schedule shape,
                     weir::sim::ScheduleOf(shortest, *network, 1));
    if (!MayJoinBatches(shape)) return none;
    int batches_left_out = BatchesLeftOut(shape, num_batches);
    int multiple = 1;
    for (int num_try = 0;;) {
      const int kept =
          MicrobatchesKept(scenario.num_microbatches, num_in_flight, num_try);
      if (kept == 0) return none;
      int left_out = scenario.num_microbatches - kept;
      left_out -= left_out % multiple;
      scenarios::ResolvedScenario fewer = scenario;
      fewer.num_microbatches -= left_out;
      ASSIGN_OR_RETURN(
          const std::shared_ptr<const schedules::Schedule> short_schedule,
          inputs_.ScheduleOf(fewer, *network, num_batches - batches_left_out));
      const int warmup = MostWarmupForwards(*short_schedule);
      if (warmup > num_in_flight) {
        num_in_flight = warmup;
        continue;
      }
      ASSIGN_OR_RETURN(const std::shared_ptr<const Program> program,
                       inputs_.ShortBatchesOf(*short_schedule, left_out));
      if (program == nullptr) {
        ++num_try;  // more microbatches may repeat
        continue;
      }
      ASSIGN_OR_RETURN(FastRun run,
                       RunProgram(scenario, network, program, true));
      if (!run.recording.complete()) return none;
      int times_multiple = 0;
      run.steadiness = FindSteadiness(*program->shortened, run.graph,
                                      run.recording, &times_multiple);
      run.window = FindWindow(program->schedule(), run.graph, run.recording,
                              MakespanOf(run.recording));
      if (run.steadiness.has_value() && run.window.steady &&
          batches_left_out % run.window.num_batches == 0) {
        run.simulated_window = run.window;
        run.window =
            WindowOfShortBatches(run.window, *run.steadiness, left_out);
        run.num_batches_left_out = batches_left_out;
        return std::optional<FastRun>(std::move(run));
      }
      multiple = std::max(times_multiple, 1);
      // Only more batches help if microbatches repeat.
      if (batches_left_out == 0 || !run.steadiness.has_value()) ++num_try;
      batches_left_out = 0;
    }
  }

  absl::StatusOr<FastRun> RunBatches(
      const scenarios::ResolvedScenario& scenario,
      const std::shared_ptr<const scenarios::Network>& network,
      int num_batches) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const schedules::Schedule> schedule,
                     inputs_.ScheduleOf(scenario, *network, num_batches));
    absl::string_view why_whole =
        schedule->flush ? "batches overlap"
                        : "no flush; batches are short or do not repeat";
    if (schedule->flush && schedule->num_batches == 1) {
      ASSIGN_OR_RETURN(std::optional<FastRun> run,
                       RunShortened(scenario, network, *schedule, &why_whole));
      if (run.has_value()) return *std::move(run);
    }
    ASSIGN_OR_RETURN(const std::shared_ptr<const Program> program,
                     inputs_.ProgramOf(scenario, schedule));
    ASSIGN_OR_RETURN(FastRun run,
                     RunReducedOrWhole(scenario, network, program));
    run.not_extrapolated = why_whole;
    return run;
  }

  absl::StatusOr<FastRun> RunReducedOrWhole(
      const scenarios::ResolvedScenario& scenario,
      const std::shared_ptr<const scenarios::Network>& network,
      const std::shared_ptr<const Program>& program) {
    const int num_batches = program->schedule().num_batches;
    ASSIGN_OR_RETURN(FastRun run, RunWhole(scenario, network, program, true));
    // How long Simulate looks for a steady state depends on its number of
    // tasks. If the upper bound could change the decision, simulate all GPUs.
    if (run.reduced() &&
        ShowsEnough(run.window, num_batches, run.num_tasks()) &&
        !ShowsEnough(run.window, num_batches, 0)) {
      return RunWhole(scenario, network, program, false);
    }
    return run;
  }

  absl::StatusOr<FastRun> RunWhole(
      const scenarios::ResolvedScenario& scenario,
      const std::shared_ptr<const scenarios::Network>& network,
      const std::shared_ptr<const Program>& program, bool folds) {
    ASSIGN_OR_RETURN(FastRun run,
                     RunProgram(scenario, network, program, folds));
    if (!run.recording.complete()) {
      return Deadlock(
          program->schedule(), run.graph, run.recording,
          scenario.scenario.communication().transfers() == BLOCKING);
    }
    run.window = FindWindow(program->schedule(), run.graph, run.recording,
                            MakespanOf(run.recording));
    run.window.rollback_seconds =
        RollbackSeconds(program->schedule(), run.graph, run.window,
                        scenario.scenario.training().rollback_fraction());
    return run;
  }

  // Returns std::nullopt if the run cannot or should not be shortened; sets
  // why_not.
  absl::StatusOr<std::optional<FastRun>> RunShortened(
      const scenarios::ResolvedScenario& scenario,
      const std::shared_ptr<const scenarios::Network>& network,
      const schedules::Schedule& full, absl::string_view* why_not) {
    *why_not = "the order is too short or not periodic";
    ShortenOptions options;
    for (int i = 0; i < kMostTries; ++i) {
      ASSIGN_OR_RETURN(const std::shared_ptr<const Program> program,
                       inputs_.ShortProgramOf(scenario, full, options));
      if (program == nullptr) return std::optional<FastRun>();
      ASSIGN_OR_RETURN(FastRun run,
                       RunProgram(scenario, network, program, true));
      if (!run.recording.complete()) return std::optional<FastRun>();
      *why_not = "the times are not periodic";
      int multiple = 0;
      run.steadiness = FindSteadiness(*program->shortened, run.graph,
                                      run.recording, &multiple);
      if (run.steadiness.has_value()) {
        run.simulated_window.end_seconds = MakespanOf(run.recording);
        run.window.end_seconds =
            run.simulated_window.end_seconds + run.steadiness->seconds_left_out;
        return std::optional<FastRun>(std::move(run));
      }
      if (multiple > options.multiple) {
        options.multiple = multiple;
      } else if (MayTakeMore(*program->shortened)) {
        options.num_periods_kept = program->shortened->num_periods_kept + 2;
      } else {
        break;
      }
    }
    return std::optional<FastRun>();
  }

  // Returns true if periods are long. The first try then kept as few as
  // possible, and the next one may keep more.
  static bool MayTakeMore(const ShortenedSchedule& shortened) {
    return shortened.period_microbatches >= shortened.schedule.num_ranks;
  }

  absl::StatusOr<FastRun> RunProgram(
      const scenarios::ResolvedScenario& scenario,
      const std::shared_ptr<const scenarios::Network>& network,
      const std::shared_ptr<const Program>& program, bool folds) {
    FastRun run;
    run.network = network;
    run.program = program;
    ASSIGN_OR_RETURN(run.prices, inputs_.PricesOf(scenario, *run.program));
    run.costs = run.prices->costs;
    RETURN_IF_ERROR(ApplySchedule(scenario, *run.network,
                                  run.program->schedule(), &run.costs));
    run.answer = folds ? inputs_.SymmetryOf(scenario, *run.network,
                                            *run.program, run.costs)
                       : std::make_shared<const SymmetryResult>(SymmetryResult{
                             std::nullopt,
                             "the number of batches is determined from all of "
                             "them"});
    const PipelineInputs inputs = run.InputsOf(scenario);
    RETURN_IF_ERROR(
        run.reduced()
            ? CheckReducedRun(scenario, run.program->schedule(), inputs.gpus)
            : CheckTasks(scenario, EstimateTasks(inputs),
                         scenario.placement.num_gpus()));
    KeepRepresentatives(inputs.gpus, &run.costs);
    run.graph = BuildPipelineGraph(inputs);
    RETURN_IF_ERROR(SetTimes(inputs.links(), &run));
    return run;
  }

  // Restricts the costs' GPUs to those of the graph.
  static void KeepRepresentatives(const Representatives& gpus, Costs* costs) {
    if (costs->gpu_device.empty()) return;
    std::vector<int> devices;
    for (int i = 0; i < gpus.placement().num_gpus(); ++i) {
      devices.push_back(costs->gpu_device[gpus.IndexOf(i)]);
    }
    costs->gpu_device = std::move(devices);
  }

  absl::Status SetTimes(const std::vector<scenarios::Link>& links,
                        FastRun* run) {
    const TaskGraph& tasks = run->graph.tasks;
    if (!tasks.slowdowns.timers.empty()) {
      // Flows nearly always slow down some timer.
      ASSIGN_OR_RETURN(run->recording, runner_.Run(tasks, links));
      run->shared_links =
          run->recording.complete() &&
          (SlowsTimers(tasks, run->recording) ||
           !std::isinf(FirstSharedTime(tasks, links, run->recording)));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(run->recording, LongestPath(tasks, links));
    if (!run->recording.complete()) return absl::OkStatus();
    const double shared_from = FirstSharedTime(tasks, links, run->recording);
    if (std::isinf(shared_from)) return absl::OkStatus();
    run->shared_links = true;
    return RunRest(tasks, links, shared_from, &run->recording);
  }

  // Simulates from the first time that flows share a link, which is often in
  // the drain.
  absl::Status RunRest(const TaskGraph& tasks,
                       const std::vector<scenarios::Link>& links,
                       double shared_from, Recording* recording) {
    const RestOfGraph rest = RestAfter(tasks, *recording, shared_from);
    ASSIGN_OR_RETURN(const Recording times, runner_.Run(rest.graph, links));
    for (size_t i = 0; i < rest.tasks.size(); ++i) {
      const int32_t task = rest.tasks[i];
      if (task < 0) continue;
      recording->start_seconds()[task] = times.start_seconds()[i];
      recording->end_seconds()[task] = times.end_seconds()[i];
    }
    return absl::OkStatus();
  }

  FastInputs inputs_;
  std::unique_ptr<GraphRunner> own_runner_;
  GraphRunner& runner_;
};

FastSimulator::FastSimulator(GraphRunner* runner)
    : impl_(std::make_unique<Impl>(runner)) {}
FastSimulator::~FastSimulator() = default;

absl::StatusOr<FastEstimate> FastSimulator::Estimate(
    const scenarios::ResolvedScenario& scenario, bool with_parts) {
  return impl_->Estimate(scenario, with_parts);
}

}  // namespace weir::sim
