// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/pipedream.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/problems.h"
#include "base/size_limits.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "plan/papers/pipedream_level.h"

namespace weir::plan {
namespace {

constexpr int kMaxMachines = 4096;
// Per step of the dynamic program, rounded up.
constexpr double kSecondsPerPipeDreamStep = 1e-9;
// Problems with more steps are first solved coarsely. Each round tries cuts at
// kRefinement times as many states as the previous one. All rounds together add
// less than a tenth to the time.
constexpr double kCoarseFromSteps = 1e8;
constexpr int kRefinement = 4;

void CheckMachines(const PipeDreamOptions& options, Problems* problems) {
  const size_t num_levels = options.num_machines.size();
  if (num_levels == 0) problems->Add("machines", "is empty, expected a list");
  if (options.bytes_per_second.size() != num_levels) {
    problems->Add("bandwidth",
                  absl::StrCat("has ", options.bytes_per_second.size(),
                               " entries, expected ", num_levels,
                               ", as many as machines"));
  }
  for (size_t i = 0; i < num_levels; ++i) {
    problems->CheckRange(absl::StrCat("machines[", i, "]"),
                         options.num_machines[i], 1, kMaxMachines);
  }
  for (size_t i = 0; i < options.bytes_per_second.size(); ++i) {
    // Infinity is valid: no link limits these devices.
    if (options.bytes_per_second[i] > 0) continue;
    problems->Add(absl::StrCat("bandwidth[", i, "]"),
                  absl::StrCat("is ", options.bytes_per_second[i],
                               ", expected a number above 0"));
  }
  if (options.activation_compression_ratio.has_value()) {
    problems->CheckPositive("activation-compression-ratio",
                            *options.activation_compression_ratio);
  }
  if (options.memory_limit_bytes.has_value()) {
    problems->CheckPositive("memory-limit", *options.memory_limit_bytes);
  }
}

struct Effort {
  double steps = 0, bytes = 0;
};

Effort EffortOf(const AntichainDag& dag, const PipeDreamOptions& options) {
  Effort effort;
  for (size_t level = 0; level < options.num_machines.size(); ++level) {
    const bool is_highest = level + 1 == options.num_machines.size();
    const double machines = options.num_machines[level];
    const double choices =
        options.straight ? machines : machines * machines / 2;
    for (size_t last = 0; last < dag.states.size(); ++last) {
      const std::vector<int>& splits = dag.predecessors[last];
      effort.steps +=
          choices * (is_highest ? splits.size()
                                : std::accumulate(splits.begin(), splits.end(),
                                                  static_cast<double>(0)));
      effort.bytes += machines * 8 * (is_highest ? 1 : last + 1);
    }
  }
  return effort;
}

void CheckSize(const AntichainDag& dag, const Effort& effort,
               Problems* problems) {
  const std::string problem = SizeProblem(
      absl::StrFormat("%d antichains on these machines, %.2g steps,",
                      dag.states.size(), effort.steps),
      {effort.bytes, effort.steps * kSecondsPerPipeDreamStep},
      "fewer machines, or a graph with merged branches and merged short nodes");
  if (!problem.empty()) problems->Add("", problem);
}

double DataParallelSeconds(const AntichainDag& dag,
                           const PipeDreamOptions& options) {
  const AntichainState& all = dag.states.back();
  double seconds = all.compute_seconds;
  int below = 1;
  for (size_t level = 0; level < options.num_machines.size(); ++level) {
    const int machines = options.num_machines[level];
    seconds += 4 * (machines - 1) * all.parameter_bytes /
               (options.bytes_per_second[level] * machines) / below;
    seconds /= machines;
    below = machines;
  }
  return seconds;
}

using Levels = std::vector<std::unique_ptr<PipeDreamLevel>>;

// Cuts stages from the highest level down, each further by the level below.
void SetStages(const Levels& levels, int num_states, PipeDreamPlan* plan) {
  plan->stages = {{0, num_states, 0, 1}};
  plan->levels.resize(levels.size());
  for (int level = std::ssize(levels) - 1; level >= 0; --level) {
    std::vector<PipeDreamStage> cut;
    for (const PipeDreamStage& whole : plan->stages) {
      for (PipeDreamStage stage :
           levels[level]->Stages(whole.first_state, whole.end_state)) {
        plan->levels[level].push_back(stage);
        stage.replicas *= whole.replicas;
        cut.push_back(stage);
      }
    }
    plan->stages = std::move(cut);
  }
}

// Returns std::nullopt if options.stop ended the search.
std::optional<Levels> Solve(const AntichainDag& dag,
                            const PipeDreamOptions& options,
                            PipeDreamGoal goal) {
  Levels levels;
  for (size_t level = 0; level < options.num_machines.size(); ++level) {
    levels.push_back(std::make_unique<PipeDreamLevel>(
        dag, options, static_cast<int>(level),
        level > 0 ? &levels.back()->best() : nullptr, goal));
    if (!levels.back()->Solve()) return std::nullopt;
  }
  return levels;
}

absl::Status Stopped(absl::string_view label) {
  return absl::CancelledError(
      absl::StrCat(label, ": interrupted before a plan was found"));
}

absl::Status NoPlan(absl::string_view label, const AntichainDag& dag,
                    const PipeDreamOptions& options) {
  const std::optional<Levels> levels =
      Solve(dag, options, PipeDreamGoal::kBytes);
  if (!levels.has_value()) return Stopped(label);
  const double bytes = levels->back()->best().back()[0];
  if (std::isinf(bytes)) {
    return absl::NotFoundError(absl::StrCat(
        label,
        ": no plan: a straight pipeline needs an antichain for every machine, "
        "found ",
        dag.states.size(), " antichains"));
  }
  if (bytes <= options.memory_limit_bytes.value_or(bytes)) {
    return absl::NotFoundError(
        absl::StrCat(label,
                     ": all plans take infinite time; give more bandwidth or "
                     "smaller costs"));
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: nothing fits %s: the smallest plan found needs %s: raise "
      "--memory-limit to %.0f bytes",
      label, FormatBytes(*options.memory_limit_bytes), FormatBytes(bytes),
      std::ceil(bytes)));
}

// Returns every `stride`-th state, counted backward from the last.
std::vector<int> EveryNth(int num_states, int stride) {
  std::vector<int> kept;
  for (int state = (num_states - 1) % stride; state < num_states;
       state += stride) {
    kept.push_back(state);
  }
  return kept;
}

// Keeps some of the states, without their nodes. The sums remain valid, as they
// are over all nodes before a state.
AntichainDag Coarsen(const AntichainDag& dag, const std::vector<int>& kept) {
  std::vector<int> index(dag.states.size(), -1);
  for (size_t i = 0; i < kept.size(); ++i) index[kept[i]] = static_cast<int>(i);
  AntichainDag coarse;
  for (const int state : kept) {
    const AntichainState& fine = dag.states[state];
    coarse.states.push_back({{},
                             fine.compute_seconds,
                             fine.activation_bytes,
                             fine.parameter_bytes,
                             fine.output_bytes});
    std::vector<int>& before = coarse.predecessors.emplace_back();
    for (const int predecessor : dag.predecessors[state]) {
      if (index[predecessor] >= 0) before.push_back(index[predecessor]);
    }
  }
  return coarse;
}

// Converts state numbers of stages back to those before Coarsen.
void Refine(const std::vector<int>& kept, std::vector<PipeDreamStage>* stages) {
  for (PipeDreamStage& stage : *stages) {
    if (stage.first_state > 0) {
      stage.first_state = kept[stage.first_state - 1] + 1;
    }
    stage.end_state = kept[stage.end_state - 1] + 1;
  }
}

// Returns std::nullopt if no plan has cuts at these states only.
std::optional<PipeDreamPlan> PlanWithCuts(const AntichainDag& dag,
                                          const PipeDreamOptions& options,
                                          const std::vector<int>& kept) {
  const AntichainDag coarse = Coarsen(dag, kept);
  const std::optional<Levels> levels =
      Solve(coarse, options, PipeDreamGoal::kSeconds);
  if (!levels.has_value()) return std::nullopt;
  PipeDreamPlan plan;
  plan.pipeline_seconds = levels->back()->best().back()[0];
  if (std::isinf(plan.pipeline_seconds)) return std::nullopt;
  plan.num_cut_states = static_cast<int>(kept.size());
  SetStages(*levels, plan.num_cut_states, &plan);
  Refine(kept, &plan.stages);
  for (auto& stages : plan.levels) Refine(kept, &stages);
  return plan;
}

// Returns the best plan of rounds with more and more cuts, except the final
// round with every cut.
std::optional<PipeDreamPlan> CoarsePlan(const AntichainDag& dag,
                                        PipeDreamOptions options) {
  options.progress = nullptr;
  const int num_states = static_cast<int>(dag.states.size());
  int stride = 1;
  while (num_states / (stride * kRefinement) >= 2) stride *= kRefinement;
  std::optional<PipeDreamPlan> best;
  for (; stride > 1 && !options.stop(); stride /= kRefinement) {
    std::optional<PipeDreamPlan> plan =
        PlanWithCuts(dag, options, EveryNth(num_states, stride));
    if (plan.has_value() && (!best.has_value() || plan->pipeline_seconds <=
                                                      best->pipeline_seconds)) {
      best = std::move(plan);
    }
  }
  return best;
}

}  // namespace

absl::StatusOr<PipeDreamPlan> OptimizePipeDream(
    absl::string_view label, const AntichainDag& dag,
    const PipeDreamOptions& options) {
  Problems problems(label);
  CheckMachines(options, &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  const Effort effort = EffortOf(dag, options);
  CheckSize(dag, effort, &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  const int num_states = static_cast<int>(dag.states.size());
  std::optional<PipeDreamPlan> plan;
  if (options.stop && effort.steps > kCoarseFromSteps) {
    plan = CoarsePlan(dag, options);
  }
  const std::optional<Levels> levels =
      Solve(dag, options, PipeDreamGoal::kSeconds);
  if (levels.has_value()) {
    const double seconds = levels->back()->best()[num_states - 1][0];
    if (std::isinf(seconds)) return NoPlan(label, dag, options);
    plan.emplace();
    plan->pipeline_seconds = seconds;
    plan->num_cut_states = num_states;
    SetStages(*levels, num_states, &*plan);
  }
  if (!plan.has_value()) return Stopped(label);
  plan->single_stage_seconds = dag.states.back().compute_seconds;
  plan->data_parallel_seconds = DataParallelSeconds(dag, options);
  plan->num_states = num_states;
  return *std::move(plan);
}

double BytesOfMinibatch(const AntichainDag& dag, const PipeDreamStage& stage) {
  return StateBytes(dag, stage.first_state, stage.end_state - 1);
}

std::vector<std::vector<int>> NodesOfStages(const AntichainDag& dag,
                                            const PipeDreamPlan& plan) {
  std::vector<std::vector<int>> nodes;
  std::vector<bool> is_taken(dag.node_names.size(), false);
  for (const PipeDreamStage& stage : plan.stages) {
    std::vector<int>& own = nodes.emplace_back();
    if (nodes.size() == 1) own = dag.input_nodes;
    for (int node : dag.states[stage.end_state - 1].nodes) {
      if (is_taken[node]) continue;
      is_taken[node] = true;
      own.push_back(node);
    }
  }
  return nodes;
}

namespace {

// Returns the devices of every server, in the order of devices.
std::vector<std::vector<int>> DevicesOfServers(const PlannerWork& work) {
  std::map<int, std::vector<int>> servers;
  for (size_t device = 0; device < work.devices.size(); ++device) {
    servers[work.devices[device].server].push_back(static_cast<int>(device));
  }
  std::vector<std::vector<int>> devices;
  for (auto& [server, own] : servers) devices.push_back(std::move(own));
  return devices;
}

PipeDreamOptions OptionsOf(const PlannerWork& work,
                           const std::vector<std::vector<int>>& servers) {
  PipeDreamOptions options;
  options.activation_compression_ratio = 1;
  const bool is_even = std::all_of(
      servers.begin(), servers.end(),
      [&](const auto& server) { return server.size() == servers[0].size(); });
  if (servers.size() == 1 || servers[0].size() == 1 || !is_even) {
    options.num_machines = {static_cast<int>(work.devices.size())};
    options.bytes_per_second = {
        std::min(work.server_bytes_per_second, work.servers_bytes_per_second)};
  } else {
    options.num_machines = {static_cast<int>(servers[0].size()),
                            static_cast<int>(servers.size())};
    options.bytes_per_second = {work.server_bytes_per_second,
                                work.servers_bytes_per_second};
  }
  return options;
}

// Assigns the next machines of the level to each stage in turn.
void SetDevices(const PipeDreamPlan& plan,
                const std::vector<std::vector<int>>& servers,
                PlannedPipeline* pipeline) {
  const bool has_levels = plan.levels.size() > 1;
  const size_t num_outer = has_levels ? plan.levels[1].size() : 1;
  int first_server = 0;
  size_t inner = 0;
  for (size_t outer = 0; outer < num_outer; ++outer) {
    const int end = has_levels ? plan.levels[1][outer].end_state
                               : plan.levels[0].back().end_state;
    const int end_server = has_levels
                               ? first_server + plan.levels[1][outer].replicas
                               : static_cast<int>(servers.size());
    int first_device = 0;
    for (; inner < plan.levels[0].size() &&
           plan.levels[0][inner].end_state <= end;
         ++inner) {
      std::vector<int>& devices = pipeline->stages[inner].devices;
      const int replicas = plan.levels[0][inner].replicas;
      if (has_levels) {
        for (int server = first_server; server < end_server; ++server) {
          for (int i = 0; i < replicas; ++i) {
            devices.push_back(servers[server][first_device + i]);
          }
        }
      } else {
        for (int i = 0; i < replicas; ++i) devices.push_back(first_device + i);
      }
      first_device += replicas;
    }
    first_server = end_server;
  }
}

}  // namespace

absl::StatusOr<PlannedPipeline> PlanPipeDream(const PlannerWork& work) {
  const AntichainDag dag = AntichainDagOf(work);
  const std::vector<std::vector<int>> servers = DevicesOfServers(work);
  ASSIGN_OR_RETURN(
      const PipeDreamPlan plan,
      OptimizePipeDream("pipedream", dag, OptionsOf(work, servers)));
  PlannedPipeline pipeline;
  pipeline.algorithm = pipeline.schedule = "pipedream";
  pipeline.objective_seconds = plan.pipeline_seconds;
  // The time of a replicated stage is divided by its replicas.
  pipeline.objectives_per_batch = work.num_microbatches;
  pipeline.num_microbatches = work.num_microbatches;
  for (const std::vector<int>& nodes : NodesOfStages(dag, plan)) {
    PlannedStage stage;
    stage.first_layer = nodes.front();
    stage.end_layer = nodes.back() + 1;
    pipeline.stages.push_back(stage);
  }
  SetDevices(plan, servers, &pipeline);
  return pipeline;
}

}  // namespace weir::plan
