// SPDX-License-Identifier: Apache-2.0
// Passes, steps and offloads. Collectives are in graph_passes.cc,
// graph_reductions.cc and graph_gathers.cc, transfers in graph_transfers.cc.
#include "sim/graph/pipeline_graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "schedules/stages_by_rank.h"
#include "sim/graph/action_seconds.h"
#include "sim/graph/graph_builder.h"

namespace weir::sim {

GraphBuilder::GraphBuilder(const PipelineInputs& inputs)
    : in_(inputs),
      schedule_(inputs.schedule),
      place_(inputs.placement()),
      full_placement_(inputs.gpus.full_placement()),
      blocking_(inputs.communication.transfers() == BLOCKING),
      dependencies_(inputs.schedule),
      groups_(inputs.costs, inputs.gpus.full_placement()),
      has_queues_(HasQueues()),
      lowering_(inputs.network, inputs.costs.collectives, inputs.costs.links,
                &graph_.tasks, inputs.gpus) {
  graph_.tensor = place_.tensor;
  graph_.pipeline = place_.pipeline;
  graph_.transfers.num_stages = schedule_.num_stages;
  graph_.transfers.total_microbatches = schedule_.total_microbatches();
  graph_.rank_stages = schedules::StagesByRank(schedule_);
}

PipelineGraph GraphBuilder::Build() {
  // Sharded gradients are reduced as soon as they are complete.
  graph_.steps.plan =
      PlanSteps(schedule_, in_.semantics,
                in_.costs.shards > 1 ? REDUCTION_OVERLAPPED
                                     : in_.communication.gradient_reduction());
  if (blocking_) graph_.exchanges = PlanExchanges(schedule_);
  SelectReductions();
  ReserveTasks();
  AddActions();
  graph_.ranges.end_of_actions = graph_.tasks.num_tasks();
  AddPassEnds();
  graph_.ranges.end_of_passes = graph_.tasks.num_tasks();
  AddSteps();
  graph_.ranges.end_of_steps = graph_.tasks.num_tasks();
  lowering_.set_purpose(CallPurpose::kReduction);
  AddReductions();
  AddTiedReductions();
  graph_.ranges.end_of_reductions = graph_.tasks.num_tasks();
  lowering_.set_purpose(CallPurpose::kGather);
  // From here on, edges lead to the starts of passes and of overlapped tasks.
  AddGathers();
  graph_.ranges.end_of_gathers = graph_.tasks.num_tasks();
  AddStreams();
  if (has_channels_) AddChannels();
  lowering_.set_purpose(CallPurpose::kTransfer);
  AddTransfers();
  if (!blocking_) QueueTransfers();
  graph_.calls = lowering_.ReleaseCollectives();
  lowering_.MergeHops();
  AddSlowdowns();
  graph_.communicators = lowering_.CountCommunicators();
  graph_.tasks.Finish();
  return std::move(graph_);
}

void GraphBuilder::ReserveTasks() {
  if (in_.gpus.reduced()) return;  // the estimate is for all GPUs
  int64_t num_actions = 0;
  for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
    num_actions += std::ssize(Actions(gpu));
  }
  // The estimate takes time, and the memory of small graphs does not matter.
  const double num_tasks =
      num_actions < 200000 ? 2.5 * num_actions : 1.05 * EstimateTasks(in_);
  graph_.tasks.Reserve(static_cast<size_t>(num_tasks),
                       static_cast<size_t>(2.5 * num_tasks));
}

void GraphBuilder::AddEdgeTo(int32_t before, int gpu, int32_t position) {
  const int32_t task = graph_.ActionTask(gpu, position);
  AddEdgeToStart(before, task);
  if (!has_pairs_) return;
  const std::vector<schedules::Action>& actions = Actions(gpu);
  if (actions[position].overlaps_next) {
    AddEdgeToStart(before, task + 1);
  } else if (position > 0 && actions[position - 1].overlaps_next) {
    AddEdgeToStart(before, task - 1);
  }
}

void GraphBuilder::AddEdgeToStart(int32_t before, int32_t task) {
  graph_.tasks.AddEdge(before, task);
  if (task >= std::ssize(first_overlapped_)) return;
  for (int32_t at = first_overlapped_[task]; at != PipelineGraph::kNone;
       at = overlapped_[at].next) {
    graph_.tasks.AddEdge(before, overlapped_[at].task);
  }
}

void GraphBuilder::AddEdgeToEnd(int32_t before, int gpu, int32_t position) {
  const std::vector<schedules::Action>& actions = Actions(gpu);
  graph_.tasks.AddEdge(before, graph_.ActionEnd(gpu, position));
  if (actions[position].overlaps_next) {
    graph_.tasks.AddEdge(before, graph_.ActionEnd(gpu, position + 1));
  } else if (position > 0 && actions[position - 1].overlaps_next) {
    graph_.tasks.AddEdge(before, graph_.ActionEnd(gpu, position - 1));
  }
}

int32_t GraphBuilder::AddOverlapped(const std::vector<int>& gpus, int position,
                                    double seconds) {
  const int32_t timer = graph_.tasks.AddTimer(seconds);
  if (first_overlapped_.empty()) {
    first_overlapped_.assign(graph_.ranges.end_of_actions,
                             PipelineGraph::kNone);
  }
  for (int gpu : gpus) {
    int32_t* last = &first_overlapped_[graph_.ActionTask(gpu, position)];
    while (*last != PipelineGraph::kNone) last = &overlapped_[*last].next;
    *last = static_cast<int32_t>(overlapped_.size());
    overlapped_.push_back({timer, PipelineGraph::kNone});
  }
  return timer;
}

void GraphBuilder::AddActions() {
  std::vector<double> seconds;
  for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
    graph_.passes.first_action.push_back(graph_.tasks.num_tasks());
    if (gpu % place_.tensor == 0 || !in_.costs.gpu_device.empty()) {
      seconds = ActionSeconds(in_, gpu);
    }
    const std::vector<schedules::Action>& actions = Actions(gpu);
    for (size_t i = 0; i < actions.size(); ++i) {
      has_pairs_ |= actions[i].overlaps_next;
      if (schedules::IsCompute(actions[i].op)) {
        graph_.tasks.AddTimer(seconds[i]);
      } else {
        AddOffload(gpu, actions[i], seconds[i]);
      }
    }
  }
}

void GraphBuilder::AddOffload(int gpu, const schedules::Action& action,
                              double seconds) {
  has_channels_ = true;
  const double bytes =
      std::round(in_.costs.stages[action.stage].activations.saved_bytes *
                 action.num_microbatches);
  const int32_t pair =
      bytes > 0 ? lowering_.HostPairOf(
                      place_.gpus[gpu], action.op == schedules::Op::kOffload,
                      RoleOf(action.op == schedules::Op::kOffload
                                 ? InstanceRole::Kind::kToHost
                                 : InstanceRole::Kind::kFromHost,
                             gpu))
                : PipelineGraph::kNone;
  if (pair == PipelineGraph::kNone) {
    graph_.tasks.AddTimer(std::max(seconds, 0.0));
  } else {
    graph_.tasks.AddFlow(pair, bytes);
  }
}

void GraphBuilder::AddSteps() {
  const bool timed = std::any_of(
      in_.costs.stages.begin(), in_.costs.stages.end(),
      [](const StageCosts& stage) { return stage.step.seconds > 0; });
  if (!timed && !graph_.reductions.has_value()) return;
  std::vector<int32_t>& first = graph_.steps.first.emplace();
  for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
    first.push_back(graph_.tasks.num_tasks());
    const std::vector<Step>& steps = graph_.steps.plan[graph_.rank_of(gpu)];
    for (size_t i = 0; i < steps.size(); ++i) {
      const StageCosts& stage = in_.costs.of(gpu, steps[i].stage);
      graph_.tasks.AddTimer(
          stage.step.seconds -
          (FollowsAStep(steps, i) ? stage.step.update_seconds : 0));
    }
  }
}

void GraphBuilder::AddStreams() {
  for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
    const std::vector<schedules::Action>& actions = Actions(gpu);
    const auto count = static_cast<int32_t>(actions.size());
    const auto& steps = graph_.steps.plan[graph_.rank_of(gpu)];
    const bool with_steps = graph_.steps.first.has_value();
    size_t step = 0;
    int32_t last = PipelineGraph::kNone;
    for (int32_t position = 0; position <= count; ++position) {
      while (with_steps && step < steps.size() &&
             steps[step].before == position) {
        const int32_t task = graph_.StepTask(gpu, static_cast<int>(step++));
        if (last != PipelineGraph::kNone) graph_.tasks.AddEdge(last, task);
        last = task;
      }
      if (position == count) break;
      if (!schedules::IsCompute(actions[position].op)) continue;
      if (last != PipelineGraph::kNone) AddEdgeTo(last, gpu, position);
      if (actions[position].overlaps_next) ++position;
      last = graph_.ActionEnd(gpu, position);
    }
  }
}

void GraphBuilder::AddChannels() {
  FindHostWaits();
  for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
    for (const auto& [position, awaited] :
         (*graph_.host_waits)[graph_.rank_of(gpu)]) {
      AddEdgeTo(graph_.ActionEnd(gpu, awaited), gpu, position);
    }
    const std::vector<schedules::Action>& actions = Actions(gpu);
    int32_t computed = PipelineGraph::kNone, offloaded = PipelineGraph::kNone,
            reloaded = PipelineGraph::kNone;
    for (int32_t i = 0; i < std::ssize(actions); ++i) {
      const int32_t end = graph_.ActionEnd(gpu, i);
      if (schedules::IsCompute(actions[i].op)) {
        computed = end;
        continue;
      }
      int32_t& channel =
          actions[i].op == schedules::Op::kOffload ? offloaded : reloaded;
      for (int32_t before : {computed, channel}) {
        if (before != PipelineGraph::kNone) {
          graph_.tasks.AddEdge(before, graph_.ActionTask(gpu, i));
        }
      }
      channel = end;
    }
  }
}

void GraphBuilder::FindHostWaits() {
  auto& waits = graph_.host_waits.emplace(schedule_.num_ranks);
  for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
    const std::vector<schedules::Action>& actions =
        schedule_.rank_actions[rank];
    for (int32_t i = 0; i < std::ssize(actions); ++i) {
      for (schedules::Place other :
           dependencies_.Awaited(actions[i], {rank, i})) {
        const schedules::Op op =
            schedule_.rank_actions[other.rank][other.position].op;
        if (schedules::IsCompute(op)) continue;
        waits[rank].push_back({i, other.position});
      }
    }
  }
}

PipelineGraph BuildPipelineGraph(const PipelineInputs& inputs) {
  return GraphBuilder(inputs).Build();
}

}  // namespace weir::sim
