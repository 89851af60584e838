// SPDX-License-Identifier: Apache-2.0
// From a schedule and its costs to tasks: one timer per action and GPU, the
// transfers between stages, the collectives of the tensor-parallel groups and
// of the gradients, the optimizer steps. Communication is derived here, never
// authored.
#ifndef WEIR_SIM_PIPELINE_GRAPH_H_
#define WEIR_SIM_PIPELINE_GRAPH_H_

#include <cstdint>
#include <vector>

#include "scenarios/network.h"
#include "scenarios/placement.h"
#include "scenarios/scenario.pb.h"
#include "schedules/schedule.h"
#include "schedules/semantics.h"
#include "sim/exchange.h"
#include "sim/stage_costs.h"
#include "sim/task_graph.h"

namespace weir {

// One optimizer step of one stage, in positions of its rank's order.
struct Step {
  int32_t stage = 0;
  int32_t update = 0;
  int32_t reduce_after = 0;  // gradients are complete after this position
  int32_t before = 0;        // the step runs before this position, or last
};

// Everything that is wanted of the graph; the referenced must outlive it.
struct PipelineInputs {
  const Schedule& schedule;
  const Semantics& semantics;
  const Costs& costs;
  const Network& network;
  const Placement& placement;
  const Communication& communication;
};

// GPUs are numbered as in Placement::index. kNone where there is no such task.
struct PipelineGraph {
  static constexpr int32_t kNone = -1;

  TaskGraph tasks;
  std::vector<std::vector<int>> rank_stages;  // [rank], ascending
  std::vector<std::vector<Step>> steps;       // [rank], in order
  std::vector<Exchanges> exchanges;           // [rank]; empty unless BLOCKING

  // The timer of the action at `position` of the GPU's order.
  int32_t ActionTask(int gpu, int position) const {
    return first_action[gpu] + position;
  }
  // The task with whose end the action ends: its timer, or the end of the
  // tensor-parallel collectives inside it.
  int32_t ActionEnd(int gpu, int position) const {
    return first_group_end.empty() ? ActionTask(gpu, position)
                                   : first_group_end[gpu / tensor] + position;
  }
  // The transfer that brings an action its input, or takes its output away.
  int32_t InboundTransfer(int gpu, const Action& action) const;
  int32_t OutboundTransfer(int gpu, const Action& action) const;

  int32_t StepTask(int gpu, int step) const {
    return first_step[gpu] == kNone ? kNone : first_step[gpu] + step;
  }
  // Start and end of the all-reduce before a step.
  int32_t ReduceStart(int gpu, int step) const;
  int32_t ReduceEnd(int gpu, int step) const;

  int rank_of(int gpu) const { return gpu / tensor % pipeline; }
  int replica_of(int gpu) const { return gpu / tensor / pipeline; }
  int num_gpus() const { return static_cast<int>(first_action.size()); }

  int tensor = 1, pipeline = 1;
  std::vector<int32_t> first_action;     // [gpu]
  std::vector<int32_t> first_group_end;  // [gpu / tensor], empty if tensor is 1
  std::vector<int32_t> first_step;       // [gpu]
  // [rank * tensor + tensor rank], empty without replicas.
  std::vector<int32_t> first_reduce_start, first_reduce_end;
  // The transfers that leave a stage forwards (activations) and backwards
  // (gradients), by TransferCell().
  std::vector<int32_t> activations, gradients;
  size_t TransferCell(int gpu, int stage, int microbatch) const {
    const size_t lane =
        static_cast<size_t>(replica_of(gpu)) * tensor + gpu % tensor;
    return (lane * num_stages + stage) * total_microbatches + microbatch;
  }
  int num_stages = 1, total_microbatches = 1;
};

// How many tasks the graph will have, to a few percent: to be asked before it
// is built.
double EstimateTasks(const PipelineInputs& inputs);

// REQUIRES: the schedule is valid and the semantics are its own.
PipelineGraph BuildPipelineGraph(const PipelineInputs& inputs);

// Which steps each rank takes and when; see ReductionMode.
std::vector<std::vector<Step>> PlanSteps(const Schedule& schedule,
                                         const Semantics& semantics,
                                         ReductionMode mode);

}  // namespace weir

#endif  // WEIR_SIM_PIPELINE_GRAPH_H_
