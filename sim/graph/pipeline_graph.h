// SPDX-License-Identifier: Apache-2.0
// Converts a schedule and its costs to tasks: one timer per action and GPU, the
// transfers between stages, the collectives of tensor-parallel groups and of
// gradients, and the optimizer steps. Communication is derived here, never part
// of the schedule.
#ifndef WEIR_SIM_GRAPH_PIPELINE_GRAPH_H_
#define WEIR_SIM_GRAPH_PIPELINE_GRAPH_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "scenarios/cluster/network.h"
#include "scenarios/cluster/placement.h"
#include "scenarios/scenario.pb.h"
#include "schedules/schedule.h"
#include "schedules/semantics.h"
#include "sim/costs/stage_costs.h"
#include "sim/engine/task_graph.h"
#include "sim/graph/communication_lowering.h"
#include "sim/graph/exchange.h"
#include "sim/graph/representatives.h"

namespace weir::sim {

// One optimizer step of one stage, with positions in its rank's order.
struct Step {
  int32_t stage = 0;
  int32_t update = 0;
  int32_t reduce_after = 0;  // gradients are complete after this position
  int32_t before = 0;        // runs before this position, or at the end
};

// The gradients of one update of one stage, reduced over all its copies (ranks
// that hold it) and replicas.
struct Reduction {
  struct Member {
    int32_t rank = 0;
    int32_t step = 0;  // index into the rank's steps
  };
  int32_t stage = 0;
  int32_t update = 0;
  std::vector<Member> members;  // by rank
};

// An action that waits for an offload or reload of its rank, as positions.
struct HostWait {
  int32_t position = 0;
  int32_t awaited = 0;

  auto operator<=>(const HostWait&) const = default;
};

// With sharded weights: consecutive passes of a rank through one stage in one
// direction, for which the stage's weights are gathered once. (W reads none.)
struct WeightRun {
  int32_t stage = 0;
  int32_t first = 0, last = 0;  // positions
};

// A collective, from the end of one task to the end of another.
struct CollectiveSpan {
  int32_t start = -1, end = -1;
};

// The inputs of the graph, which must outlive it.
struct PipelineInputs {
  const schedules::Schedule& schedule;
  const schedules::Semantics& semantics;
  const Costs& costs;
  const scenarios::Network& network;
  // The GPUs of the costs and of the graph.
  Representatives gpus;
  const Communication& communication;

  const scenarios::Placement& placement() const { return gpus.placement(); }
  const scenarios::Placement& placement_of_all() const {
    return gpus.full_placement();
  }
  // Returns the links that routes of the graph name.
  const std::vector<scenarios::Link>& links() const {
    return gpus.LinksOf(network);
  }
};

// Indices of tasks. kNone: there is no such task.
struct PassTasks {
  std::vector<int32_t> first_action;  // [gpu]
  // [gpu / tensor]; absent: passes end with their timers.
  std::optional<std::vector<int32_t>> first_end;
  // [gpu / tensor]; absent: the same as their timers, as sequences are not
  // shared.
  std::optional<std::vector<int32_t>> first_context_end;
  // [gpu / tensor]; absent: nothing follows the tensor collectives.
  std::optional<std::vector<int32_t>> first_tensor_end;
  // The start of the experts' collectives in a pass, by its ActionEnd.
  absl::flat_hash_map<int32_t, int32_t> expert_start;
  // Their end, with sharded weights, gathers of which may end later.
  absl::flat_hash_map<int32_t, int32_t> expert_end;
};

struct StepTasks {
  std::vector<std::vector<Step>> plan;  // [rank], in order
  // [gpu]; absent: steps take no time and follow no reduction.
  std::optional<std::vector<int32_t>> first;
  // By GPU and step.
  absl::flat_hash_map<std::pair<int, int>, CollectiveSpan> tied_reductions;
  absl::flat_hash_map<std::pair<int, int>, CollectiveSpan> gathers;
  // By GPU and position of the pass that waits for it: gathers of the weights
  // that the previous step updated.
  absl::flat_hash_map<std::pair<int, int>, CollectiveSpan> early_gathers;
};

struct ReductionTasks {
  std::vector<Reduction> plan;
  // [rank][step]: index into plan; kNone if the stage has one copy only.
  std::vector<std::vector<int32_t>> of_step;
  // [tensor rank], by index into plan.
  std::vector<int32_t> first_start, first_end;
  // [tensor rank][index into plan]
  std::vector<std::vector<std::vector<CollectiveSpan>>> pieces;
};

// Gathers of sharded weights.
struct GatherTasks {
  std::vector<std::vector<WeightRun>> runs;  // [rank], in order
  // [rank * tensor + tensor rank]
  std::vector<int32_t> first_start, first_end;
  std::vector<std::vector<CollectiveSpan>> layers;  // [.., run]
};

// The transfers that leave a stage forward (activations) and backward
// (gradients), by PipelineGraph::TransferCell().
struct TransferTasks {
  int num_stages = 1, total_microbatches = 1;
  std::vector<int32_t> activations, gradients;
};

// Ends of ranges of tasks by purpose, in this order: actions, collectives and
// ends of passes, steps, reductions, gathers, transfers.
struct TaskRanges {
  int32_t end_of_actions = 0, end_of_passes = 0, end_of_steps = 0,
          end_of_reductions = 0, end_of_gathers = 0;
};

// GPUs are numbered as in Placement::index.
struct PipelineGraph {
  static constexpr int32_t kNone = -1;

  TaskGraph tasks;
  int tensor = 1, pipeline = 1;
  std::vector<std::vector<int>> rank_stages;  // [rank], ascending
  PassTasks passes;
  StepTasks steps;
  std::optional<ReductionTasks> reductions;  // absent: nothing is reduced
  std::optional<GatherTasks> gathers;        // absent: weights are not sharded
  TransferTasks transfers;
  TaskRanges ranges;
  // [rank]; absent unless transfers are blocking.
  std::optional<std::vector<Exchanges>> exchanges;
  // [rank]; absent: no rank offloads.
  std::optional<std::vector<std::vector<HostWait>>> host_waits;
  // Empty without a model of collectives or measured links.
  std::vector<CollectiveCall> calls;
  // [GPU of the cluster]
  std::vector<calibrate::CommunicatorCounts> communicators;

  int rank_of(int gpu) const { return gpu / tensor % pipeline; }
  int replica_of(int gpu) const { return gpu / tensor / pipeline; }
  int num_gpus() const { return static_cast<int>(passes.first_action.size()); }

  // Returns the task of the action at `position` of the GPU's order: a timer,
  // or the flow of an offload or reload.
  int32_t ActionTask(int gpu, int position) const {
    return passes.first_action[gpu] + position;
  }
  // Returns the task whose end is the end of the action: its timer, or the end
  // of the collectives inside it.
  int32_t ActionEnd(int gpu, int position) const {
    return passes.first_end.has_value()
               ? (*passes.first_end)[gpu / tensor] + position
               : ActionTask(gpu, position);
  }
  // Returns the task whose end is the end of the context-parallel exchanges
  // that follow the kernels of the action.
  int32_t ContextEnd(int gpu, int position) const {
    return passes.first_context_end.has_value()
               ? (*passes.first_context_end)[gpu / tensor] + position
               : ActionTask(gpu, position);
  }
  // Returns the task whose end is the end of the tensor-parallel collectives
  // inside the action. Then, until the action ends, tokens move between experts
  // or sharded weights are gathered.
  int32_t TensorEnd(int gpu, int position) const {
    if (passes.first_tensor_end.has_value()) {
      return (*passes.first_tensor_end)[gpu / tensor] + position;
    }
    return tensor > 1 ? ActionEnd(gpu, position) : ActionTask(gpu, position);
  }
  // Returns the task whose end is the end of the collectives inside the action,
  // without gathers of sharded weights. Requires: weights are sharded.
  int32_t ExchangeEnd(int gpu, int position) const {
    const auto at = passes.expert_end.find(ActionEnd(gpu, position));
    return at == passes.expert_end.end() ? TensorEnd(gpu, position)
                                         : at->second;
  }
  // Return the transfer of an action's input, and of its output.
  int32_t InboundTransfer(int gpu, const schedules::Action& action) const;
  int32_t OutboundTransfer(int gpu, const schedules::Action& action) const;
  size_t TransferCell(int gpu, int stage, int microbatch) const {
    const size_t lane =
        static_cast<size_t>(replica_of(gpu)) * tensor + gpu % tensor;
    return (lane * transfers.num_stages + stage) *
               transfers.total_microbatches +
           microbatch;
  }

  int32_t StepTask(int gpu, int step) const {
    return steps.first.has_value() ? (*steps.first)[gpu] + step : kNone;
  }
  // Returns the end of the reduction before a step.
  int32_t ReduceEnd(int gpu, int step) const;
  // Returns the pieces that are reduced during the last backward, and the
  // remaining one. Empty if nothing is reduced.
  std::span<const CollectiveSpan> ReductionPieces(int gpu, int step) const;
  // Return the start and end of the gather of the first layer before a run of
  // weights, and the gather of the other layers during its first pass; absent
  // if there are no others. Require: weights are sharded.
  int32_t GatherStart(int gpu, int run) const;
  int32_t GatherEnd(int gpu, int run) const;
  CollectiveSpan LayersGather(int gpu, int run) const;
  // Return the collectives that sum the gradients of a tied embedding before
  // the step, and that gather the weights updated by other replicas after it.
  // Absent: none.
  CollectiveSpan TiedReduction(int gpu, int step) const;
  CollectiveSpan StepGather(int gpu, int step) const;
};

// A stage's gradients are reduced in `num_calls` calls, which are simulated as
// `num_pieces` pieces.
struct ReductionParts {
  double num_calls = 1;
  int num_pieces = 1;
};
ReductionParts PartsOfReduction(const PipelineInputs& inputs,
                                const StageCosts& stage);

// The calls of one of `num_pieces` pieces that reduce one stage's gradients
// over its copies on `num_ranks` ranks and their replicas: first the parameters
// that all copies have, then those of experts, over copies with the same
// experts.
struct ReductionCollectives {
  int num_pieces = 1;
  Collectives dense, experts;
  // Biases and norms that are reduced one by one; count 0: none.
  Collectives small = {.count = 0};
  // All-reduces of shards among the hybrid-sharding groups.
  Collectives shards = {.count = 0};
};
ReductionCollectives CollectivesOfReduction(const PipelineInputs& inputs,
                                            const StageCosts& stage,
                                            size_t num_ranks);
// Returns true if the weights that the previous step updated are gathered while
// the first forward passes run, rather than after the step.
bool GathersBeforeForward(const PipelineInputs& inputs);
// The same for gathering the shards that each replica has updated.
ReductionCollectives CollectivesOfStepGather(const PipelineInputs& inputs,
                                             const StageCosts& stage);

// The gathers of sharded weights for a pass.
struct ShardGathers {
  // Before it: of the first layer that it needs, and exposed gathers of others
  // (count 0: none).
  std::array<Collectives, 2> before;
  // During it; count 0: none.
  Collectives overlapped = {.count = 0};
  // The same of experts, over the GPUs that have the same ones; bytes 0: they
  // are gathered with other weights, or not sharded.
  std::array<Collectives, 2> experts_before;
  Collectives experts_overlapped = {.count = 0};
  // The host launches copies for at least this long before the pass.
  double host_seconds = 0;
  // They start when the pass before has ended.
  bool exposed = false;
};
ShardGathers CollectivesOfGather(const PipelineInputs& inputs,
                                 const StageCosts& stage, bool forward);

// Returns how many tasks the graph will have, to a few percent.
double EstimateTasks(const PipelineInputs& inputs);

// Requires: the schedule is valid and the semantics belong to it.
PipelineGraph BuildPipelineGraph(const PipelineInputs& inputs);

// Returns the steps of each rank and their positions; see ReductionMode.
std::vector<std::vector<Step>> PlanSteps(const schedules::Schedule& schedule,
                                         const schedules::Semantics& semantics,
                                         ReductionMode mode);

// Returns true if this step is taken together with the one before it, as those
// of a rank's chunks are. The fixed cost of an update is then paid once.
bool FollowsAStep(const std::vector<Step>& rank_steps, size_t step);

// Groups the steps of all ranks by stage and update, in the order of the ranks
// and their steps.
std::vector<Reduction> PlanReductions(
    const std::vector<std::vector<Step>>& steps);

// Returns the weight runs of each rank.
std::vector<std::vector<WeightRun>> PlanWeightRuns(
    const schedules::Schedule& schedule);

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_PIPELINE_GRAPH_H_
