// SPDX-License-Identifier: Apache-2.0
#include "sim/fast/fast_simulator.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "sim/costs/schedule_costs.h"
#include "sim/engine/engine.h"
#include "sim/engine/graph_runner.h"
#include "sim/engine/longest_path.h"
#include "sim/fast/fast_inputs.h"
#include "sim/fast/joined_batches.h"
#include "sim/prepare.h"
#include "sim/report/gpu_times.h"
#include "sim/report/memory.h"
#include "sim/report/window.h"
#include "sim/run_size.h"

namespace weir::sim {
namespace {

// Trying more numbers of periods would cost as much as the whole run.
constexpr int kMostTries = 2;

// Upper bound on the tasks of a full graph per task of the reduced graph: the
// hops of all rings that one hop represents, with a margin.
constexpr double kMostTasksPerReduced = 16;

// One run of a graph and its inputs.
struct Run {
  std::shared_ptr<const scenarios::Network> network;
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Prices> prices;  // the costs point into it
  std::shared_ptr<const SymmetryResult> answer;
  Costs costs;
  PipelineGraph graph;
  Recording recording{0};
  std::optional<Steadiness> steadiness;  // only if shortened
  absl::string_view not_extrapolated;    // reason, for a whole run
  Window window;
  bool shared_links = false;

  PipelineInputs InputsOf(const scenarios::ResolvedScenario& scenario) const {
    return {program->schedule(),
            program->semantics,
            costs,
            *network,
            answer->GpusOf(scenario.placement),
            scenario.scenario.communication()};
  }
  bool reduced() const { return answer->symmetry.has_value(); }
  // Returns the tasks of all GPUs; if reduced, an upper bound.
  double num_tasks() const {
    const double count = graph.tasks.num_tasks();
    if (!reduced()) return count;
    return count * kMostTasksPerReduced *
           answer->symmetry->full_placement().num_gpus() /
           answer->symmetry->representatives().num_gpus();
  }
};

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
    const auto run_batches = [&](int num_batches) -> absl::StatusOr<Run> {
      return RunBatches(scenario, network, num_batches);
    };
    ASSIGN_OR_RETURN(std::optional<FastEstimate> joined,
                     EstimateJoined(scenario, network));
    if (joined.has_value()) return *std::move(joined);
    ASSIGN_OR_RETURN(const Run run, RunToSteadyState(scenario, run_batches));
    FastEstimate estimate = Fill(scenario, run);
    if (with_parts) FillParts(scenario, run, &estimate);
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
    for (;; num_batches *= 2) {
      ASSIGN_OR_RETURN(schedules::Schedule schedule,
                       weir::sim::ScheduleOf(scenario, *network, num_batches));
      if (!MayJoinBatches(schedule)) return none;
      const int num_microbatches = schedule.num_microbatches;
      schedules::WeightPolicy weights = schedule.weights;
      JoinBatches(&schedule);
      absl::string_view why_not;
      ASSIGN_OR_RETURN(const std::optional<Run> run,
                       RunShortened(scenario, network, schedule, &why_not));
      if (!run.has_value() || run->reduced() ||
          !AreOnlyPasses(run->graph, run->costs) ||
          run->steadiness->cuts.size() != 1 ||
          run->program->shortened->num_lanes != 1) {
        return none;
      }
      schedule.num_microbatches = num_microbatches;
      schedule.num_batches = num_batches;
      schedule.flush = false;
      schedule.weights = std::move(weights);
      const Window window =
          WindowOfJoined(schedule, *run->program->shortened, *run->steadiness,
                         run->graph, run->recording, run->window.end_seconds);
      const double num_tasks = TasksOfJoined(
          run->graph, run->program->schedule(), schedule.total_microbatches());
      if (!ShowsEnough(window, num_batches, num_tasks)) continue;
      FastEstimate estimate = Fill(scenario, *run);
      estimate.batch_seconds = window.batch_seconds();
      estimate.num_microbatches = schedule.total_microbatches();
      return std::optional<FastEstimate>(std::move(estimate));
    }
  }

  absl::StatusOr<Run> RunBatches(
      const scenarios::ResolvedScenario& scenario,
      const std::shared_ptr<const scenarios::Network>& network,
      int num_batches) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const schedules::Schedule> schedule,
                     inputs_.ScheduleOf(scenario, *network, num_batches));
    absl::string_view why_whole =
        schedule->flush ? "batches overlap" : "no flush";
    if (schedule->flush && schedule->num_batches == 1) {
      ASSIGN_OR_RETURN(std::optional<Run> run,
                       RunShortened(scenario, network, *schedule, &why_whole));
      if (run.has_value()) return *std::move(run);
    }
    ASSIGN_OR_RETURN(const std::shared_ptr<const Program> program,
                     inputs_.ProgramOf(scenario, schedule));
    ASSIGN_OR_RETURN(Run run, RunReducedOrWhole(scenario, network, program));
    run.not_extrapolated = why_whole;
    return run;
  }

  absl::StatusOr<Run> RunReducedOrWhole(
      const scenarios::ResolvedScenario& scenario,
      const std::shared_ptr<const scenarios::Network>& network,
      const std::shared_ptr<const Program>& program) {
    const int num_batches = program->schedule().num_batches;
    ASSIGN_OR_RETURN(Run run, RunWhole(scenario, network, program, true));
    // How long Simulate looks for a steady state depends on its number of
    // tasks. If the upper bound could change the decision, simulate all GPUs.
    if (run.reduced() &&
        ShowsEnough(run.window, num_batches, run.num_tasks()) &&
        !ShowsEnough(run.window, num_batches, 0)) {
      return RunWhole(scenario, network, program, false);
    }
    return run;
  }

  absl::StatusOr<Run> RunWhole(
      const scenarios::ResolvedScenario& scenario,
      const std::shared_ptr<const scenarios::Network>& network,
      const std::shared_ptr<const Program>& program, bool folds) {
    ASSIGN_OR_RETURN(Run run, RunProgram(scenario, network, program, folds));
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
  absl::StatusOr<std::optional<Run>> RunShortened(
      const scenarios::ResolvedScenario& scenario,
      const std::shared_ptr<const scenarios::Network>& network,
      const schedules::Schedule& full, absl::string_view* why_not) {
    *why_not = "the order is too short or not periodic";
    ShortenOptions options;
    for (int i = 0; i < kMostTries; ++i) {
      ASSIGN_OR_RETURN(const std::shared_ptr<const Program> program,
                       inputs_.ShortProgramOf(scenario, full, options));
      if (program == nullptr) return std::optional<Run>();
      ASSIGN_OR_RETURN(Run run, RunProgram(scenario, network, program, true));
      if (!run.recording.complete()) return std::optional<Run>();
      *why_not = "the times are not periodic";
      int multiple = 0;
      run.steadiness = FindSteadiness(*program->shortened, run.graph,
                                      run.recording, &multiple);
      if (run.steadiness.has_value()) {
        run.window.end_seconds =
            MakespanOf(run.recording) + run.steadiness->seconds_left_out;
        return std::optional<Run>(std::move(run));
      }
      if (multiple > options.multiple) {
        options.multiple = multiple;
      } else if (MayTakeMore(*program->shortened)) {
        options.num_periods_kept = program->shortened->num_periods_kept + 2;
      } else {
        break;
      }
    }
    return std::optional<Run>();
  }

  // Returns true if periods are long; as few as possible were kept then.
  static bool MayTakeMore(const ShortenedSchedule& shortened) {
    return shortened.period_microbatches >= shortened.schedule.num_ranks;
  }

  absl::StatusOr<Run> RunProgram(
      const scenarios::ResolvedScenario& scenario,
      const std::shared_ptr<const scenarios::Network>& network,
      const std::shared_ptr<const Program>& program, bool folds) {
    Run run;
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

  absl::Status SetTimes(const std::vector<scenarios::Link>& links, Run* run) {
    const TaskGraph& tasks = run->graph.tasks;
    ASSIGN_OR_RETURN(run->recording, LongestPath(tasks, links));
    if (!run->recording.complete()) return absl::OkStatus();
    // Sorting all flows takes longer than looking for slow timers.
    const bool slows = SlowsTimers(tasks, run->recording);
    const double shared_from =
        slows ? 0 : FirstSharedTime(tasks, links, run->recording);
    if (!slows && std::isinf(shared_from)) return absl::OkStatus();
    run->shared_links = true;
    if (!tasks.slowdowns.timers.empty()) {
      ASSIGN_OR_RETURN(run->recording, runner_.Run(tasks, links));
      return absl::OkStatus();
    }
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

  static FastEstimate Fill(const scenarios::ResolvedScenario& scenario,
                           const Run& run) {
    FastEstimate ranked;
    const PipelineInputs inputs = run.InputsOf(scenario);
    const bool extrapolated = run.steadiness.has_value();
    ranked.batch_seconds = run.window.batch_seconds();
    ranked.makespan_seconds =
        extrapolated ? run.window.end_seconds : MakespanOf(run.recording);
    ranked.peak_bytes.resize(inputs.placement().pipeline);
    for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
      const MemoryTimeline memory =
          TraceMemory(inputs, run.graph, run.recording, gpu, extrapolated);
      const double peak =
          extrapolated
              ? PeakBytesOfAll(memory, *run.program->shortened, *run.steadiness)
              : memory.peak_bytes;
      double& most = ranked.peak_bytes[run.graph.rank_of(gpu)];
      most = std::max(most, peak);
      const std::optional<double>& capacity =
          run.costs.device_of(gpu).memory_bytes;
      if (capacity.has_value() && peak > *capacity) {
        ranked.fits_memory = false;
      }
    }
    ranked.reduced = run.reduced();
    ranked.extrapolated = extrapolated;
    ranked.shared_links = run.shared_links;
    ranked.num_simulated_gpus = run.graph.num_gpus();
    ranked.num_simulated_microbatches =
        run.program->schedule().total_microbatches();
    ranked.num_microbatches = extrapolated ? scenario.num_microbatches
                                           : ranked.num_simulated_microbatches;
    if (!ranked.reduced) ranked.not_reduced = run.answer->why_not;
    ranked.not_extrapolated = run.not_extrapolated;
    return ranked;
  }

  // Means over the GPUs of each pipeline rank, then over the ranks. In a
  // shortened run, passes that were left out count as the mean of the others.
  static void FillParts(const scenarios::ResolvedScenario& scenario,
                        const Run& run, FastEstimate* estimate) {
    const PipelineInputs inputs = run.InputsOf(scenario);
    const int num_ranks = inputs.placement().pipeline;
    std::vector<double> compute(num_ranks), communication(num_ranks);
    std::vector<int> num_gpus(num_ranks);
    Window window = run.window;
    double repeated = 1;
    if (run.steadiness.has_value()) {
      // Passes of the periods that were left out.
      window.end_seconds = MakespanOf(run.recording);
      repeated = static_cast<double>(scenario.num_microbatches) /
                 run.program->schedule().total_microbatches();
    }
    // Each GPU of the graph counts as often as the GPUs that it represents.
    std::vector<int> represented(run.graph.num_gpus(), 1);
    if (run.reduced()) {
      const Symmetry& symmetry = *run.answer->symmetry;
      represented.assign(run.graph.num_gpus(), 0);
      for (int i = 0; i < symmetry.full_placement().num_gpus(); ++i) {
        ++represented[symmetry.RepresentativeOf(i)];
      }
    }
    for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
      const GpuTimes times = TimesOf(inputs, run.graph, run.recording, gpu,
                                     window.begin_seconds, window.end_seconds);
      const double collectives = times.tensor_collective_seconds +
                                 times.expert_exchange_seconds +
                                 times.context_exchange_seconds;
      const int rank = run.graph.rank_of(gpu);
      compute[rank] +=
          represented[gpu] * (repeated * (times.busy_seconds - collectives -
                                          times.optimizer_seconds) +
                              times.optimizer_seconds);
      communication[rank] += represented[gpu] * repeated * collectives;
      num_gpus[rank] += represented[gpu];
    }
    for (int rank = 0; rank < num_ranks; ++rank) {
      const double parts =
          1.0 * std::max(num_gpus[rank], 1) * num_ranks * window.num_batches;
      estimate->compute_seconds += std::max(compute[rank], 0.0) / parts;
      estimate->communication_seconds += communication[rank] / parts;
    }
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
