// SPDX-License-Identifier: Apache-2.0
// Collectives of replicas, which are reductions of gradients and gathers of
// updated weights; and the sum of a tied embedding.
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/graph/graph_builder.h"
#include "sim/graph/replica_groups.h"

namespace weir::sim {
namespace {

// Returns the time in which the host launches the copies of a piece whose
// collectives are called with lists of tensors.
double ListSeconds(const PipelineInputs& inputs,
                   const ReductionCollectives& calls) {
  if (inputs.costs.shards == 1) return 0;
  return (calls.dense.count + calls.small.count) *
         inputs.costs.shard_calls.list_seconds;
}

}  // namespace

void GraphBuilder::SelectReductions() {
  std::vector<Reduction> all = PlanReductions(graph_.steps.plan);
  const auto meets = [&](const Reduction& reduction) {
    return reduction.members.size() * full_placement_.data > 1 ||
           (groups_.crosses_tensor() &&
            in_.costs.stages[reduction.stage].parameters.expert_gradient_bytes >
                0);
  };
  const bool reduces =
      std::any_of(all.begin(), all.end(), [&](const Reduction& reduction) {
        return meets(reduction) &&
               (in_.costs.stages[reduction.stage].parameters.gradient_bytes >
                    0 ||
                ((!schedule_.flush || schedule_.overlaps_batches()) &&
                 reduction.members.size() > 1));
      });
  if (!reduces) return;
  ReductionTasks& selected = graph_.reductions.emplace();
  for (const auto& steps : graph_.steps.plan) {
    selected.of_step.emplace_back(steps.size(), PipelineGraph::kNone);
  }
  for (Reduction& reduction : all) {
    if (!meets(reduction)) continue;
    const auto index = static_cast<int32_t>(selected.plan.size());
    for (const Reduction::Member& member : reduction.members) {
      selected.of_step[member.rank][member.step] = index;
    }
    selected.plan.push_back(std::move(reduction));
  }
}

void GraphBuilder::AddReductions() {
  if (!graph_.reductions.has_value()) return;
  ReductionTasks& reductions = *graph_.reductions;
  const auto count = static_cast<int64_t>(reductions.plan.size());
  last_step_gather_.assign(schedule_.num_ranks, PipelineGraph::kNone);
  for (int t = 0; t < place_.tensor; ++t) {
    next_shared_experts_ = 0;
    reductions.first_start.push_back(graph_.tasks.AddTimers(count));
    reductions.first_end.push_back(graph_.tasks.AddTimers(count));
    reductions.pieces.emplace_back(count);
    // One communicator for the replicas of a rank and one for the copies of a
    // stage: the reductions of each run one after another.
    std::vector<int32_t> last_of_rank(schedule_.num_ranks,
                                      PipelineGraph::kNone);
    std::vector<int32_t> last_of_stage(schedule_.num_stages,
                                       PipelineGraph::kNone);
    for (int32_t i = 0; i < count; ++i) {
      const Reduction& reduction = reductions.plan[i];
      AddReduction(reduction, t, i,
                   reduction.members.size() == 1
                       ? &last_of_rank[reduction.members[0].rank]
                       : &last_of_stage[reduction.stage]);
    }
    last_step_gather_.assign(schedule_.num_ranks, PipelineGraph::kNone);
    for (const Reduction& reduction : reductions.plan) {
      if (in_.costs.optimizer_shards == 1) break;
      for (const auto& [rank, step] : reduction.members) {
        if (GathersBeforeForward(in_)) {
          GatherBeforeForward(rank, step, t);
        } else {
          GatherSteppedWeights(rank, step, t);
        }
      }
    }
  }
}

const GraphBuilder::Copies& GraphBuilder::CopiesOf(
    const std::vector<int>& ranks, int t) {
  const auto [at, added] = copies_.try_emplace(std::pair(ranks, t));
  Copies& copies = at->second;
  if (!added) return copies;
  const int index = in_.gpus.IndexOfCopies(ranks);
  const auto add = [&](InstanceRole::Kind kind, std::vector<GpuRun> runs,
                       std::vector<Group>* groups) {
    // All of these replicas are in the graph, or one represents them all.
    if (place_.data < full_placement_.data && !runs.empty()) runs.resize(1);
    for (const GpuRun& run : runs) {
      const int replica = runs.size() > 1 ? groups_.ReplicaOf(run.first) : 0;
      groups->push_back(lowering_.GroupOf(groups_.GpusOf(run, ranks),
                                          {kind, index, 0, replica, t}));
    }
  };
  const int tensor_rank = in_.gpus.TensorRankOf(t);
  add(in_.costs.shard_replicas > 1 ? InstanceRole::Kind::kShards
                                   : InstanceRole::Kind::kCopies,
      groups_.Copies(tensor_rank), &copies.all);
  add(InstanceRole::Kind::kExpertCopies, groups_.ExpertCopies(tensor_rank),
      &copies.experts);
  add(InstanceRole::Kind::kShardCopies, groups_.ShardCopies(tensor_rank),
      &copies.shards);
  return copies;
}

void GraphBuilder::AddToAll(const std::vector<Group>& groups,
                            std::span<const Collectives> calls, int32_t start,
                            int32_t end) {
  for (const Group& group : groups) {
    if (group.links.num_ranks == 1) {
      graph_.tasks.AddEdge(start, end);
      continue;
    }
    const int32_t done = graph_.tasks.AddTimer(0);
    lowering_.AddCollectives(group, calls, start, done);
    graph_.tasks.AddEdge(done, end);
  }
}

void GraphBuilder::AddSharedExperts(const Copies& copies,
                                    const Collectives& experts, int32_t start,
                                    int32_t end) {
  if (next_shared_experts_ == shared_experts_.size()) {
    const CollectiveSpan span = {graph_.tasks.AddTimer(0),
                                 graph_.tasks.AddTimer(0)};
    AddToAll(copies.experts, {&experts, 1}, span.start, span.end);
    shared_experts_.push_back(span);
  }
  const CollectiveSpan span = shared_experts_[next_shared_experts_++];
  graph_.tasks.AddEdge(start, span.start);
  graph_.tasks.AddEdge(span.end, end);
}

void GraphBuilder::AddPiece(const Copies& copies,
                            const ReductionCollectives& calls, int32_t start,
                            int32_t end) {
  const auto& [num_pieces, dense, experts, small, shards] = calls;
  const Collectives both[] = {dense, small};
  const auto others = std::span(both).first(small.count > 0 ? 2 : 1);
  const bool has_shards = shards.count > 0;
  // Ends the collectives before those that follow.
  const auto next = [&](bool last) {
    return last ? end : graph_.tasks.AddTimer(0);
  };
  int32_t done = next(experts.bytes == 0 && !has_shards);
  if (copies.all.size() == 1 && copies.all[0].links.num_ranks > 1) {
    lowering_.AddCollectives(copies.all[0], others, start, done);
  } else {
    AddToAll(copies.all, others, start, done);
  }
  if (experts.bytes > 0) {
    start = std::exchange(done, next(!has_shards));
    if (groups_.crosses_tensor()) {
      AddSharedExperts(copies, experts, start, done);
    } else {
      AddToAll(copies.experts, {&experts, 1}, start, done);
    }
  }
  if (has_shards) AddToAll(copies.shards, {&shards, 1}, done, end);
}

void GraphBuilder::AddReduction(const Reduction& reduction, int t,
                                int32_t index, int32_t* last) {
  const int32_t start = graph_.reductions->first_start[t] + index;
  const int32_t end = graph_.reductions->first_end[t] + index;
  std::vector<int> ranks;
  for (const auto& [rank, step] : reduction.members) {
    ranks.push_back(rank);
    for (int r = 0; r < place_.data; ++r) {
      const int gpu = place_.index(r, rank, t);
      graph_.tasks.AddEdge(
          graph_.ActionEnd(gpu, graph_.steps.plan[rank][step].reduce_after),
          start);
      graph_.tasks.AddEdge(end, graph_.StepTask(gpu, step));
    }
  }
  int32_t before = std::exchange(*last, end);
  if (in_.costs.stages[reduction.stage].parameters.gradient_bytes == 0) {
    if (before != PipelineGraph::kNone) graph_.tasks.AddEdge(before, start);
    graph_.tasks.AddEdge(start, end);
  } else {
    const Copies& copies = CopiesOf(ranks, t);
    const ReductionCollectives calls = CollectivesOfReduction(
        in_, in_.costs.stages[reduction.stage], ranks.size());
    before = AddEarlyPieces(reduction, t, index, copies, calls, before);
    if (before != PipelineGraph::kNone) graph_.tasks.AddEdge(before, start);
    int32_t launched = start;
    if (const double seconds = ListSeconds(in_, calls); seconds > 0) {
      launched = graph_.tasks.AddTimer(seconds);
      graph_.tasks.AddEdge(start, launched);
    }
    AddPiece(copies, calls, launched, end);
  }
  graph_.reductions->pieces[t][index].push_back({start, end});
}

int32_t GraphBuilder::AddEarlyPieces(const Reduction& reduction, int t,
                                     int32_t index, const Copies& copies,
                                     const ReductionCollectives& calls,
                                     int32_t last) {
  for (int k = 1; k < calls.num_pieces; ++k) {
    const int32_t start = graph_.tasks.AddTimer(0);
    for (const auto& [rank, step] : reduction.members) {
      const int position = graph_.steps.plan[rank][step].reduce_after;
      for (int r = 0; r < place_.data; ++r) {
        const int gpu = place_.index(r, rank, t);
        const double seconds =
            graph_.tasks.amount(graph_.ActionTask(gpu, position));
        graph_.tasks.AddEdge(
            AddOverlapped({gpu}, position, seconds * k / calls.num_pieces),
            start);
      }
    }
    if (last != PipelineGraph::kNone) graph_.tasks.AddEdge(last, start);
    last = graph_.tasks.AddTimer(0);
    AddPiece(copies, calls, start, last);
    graph_.reductions->pieces[t][index].push_back({start, last});
  }
  return last;
}

void GraphBuilder::GatherSteppedWeights(int rank, int step, int t) {
  const int32_t start = graph_.tasks.AddTimer(0);
  const int32_t end = graph_.tasks.AddTimer(0);
  for (int r = 0; r < place_.data; ++r) {
    const int gpu = place_.index(r, rank, t);
    graph_.tasks.AddEdge(graph_.StepTask(gpu, step), start);
    // The next batch reads the gathered weights.
    const int32_t next = graph_.steps.plan[rank][step].before;
    if (next < std::ssize(Actions(gpu))) AddEdgeTo(end, gpu, next);
    graph_.steps.gathers[{gpu, step}] = {start, end};
  }
  const int32_t before = std::exchange(last_step_gather_[rank], end);
  if (before != PipelineGraph::kNone) graph_.tasks.AddEdge(before, start);
  const StageCosts& stage =
      in_.costs.stages[graph_.steps.plan[rank][step].stage];
  AddPiece(CopiesOf({rank}, t), CollectivesOfStepGather(in_, stage), start,
           end);
}

void GraphBuilder::GatherBeforeForward(int rank, int step, int t) {
  const int stage_index = graph_.steps.plan[rank][step].stage;
  const StageCosts& stage = in_.costs.stages[stage_index];
  const auto& actions = schedule_.rank_actions[rank];
  const auto first = static_cast<int>(
      std::find_if(actions.begin(), actions.end(),
                   [&](const schedules::Action& action) {
                     return action.op == schedules::Op::kForward &&
                            action.stage == stage_index;
                   }) -
      actions.begin());
  if (first == std::ssize(actions)) return;
  const ReductionCollectives all = CollectivesOfStepGather(in_, stage);
  // Buckets hold equally many elements of gradients and of weights.
  const double num_buckets =
      in_.costs.bucket_bytes > 0
          ? std::max(stage.parameters.gradient_bytes / in_.costs.bucket_bytes,
                     1.0)
          : 1;
  const auto part_of = [&](double fraction) {
    ReductionCollectives part = all;
    for (Collectives* calls : {&part.dense, &part.experts}) {
      // Whole calls as far as there are several.
      (calls->count > 1 ? calls->count : calls->bytes) *= fraction;
    }
    return part;
  };
  const int32_t start = graph_.tasks.AddTimer(0);
  const int32_t first_end = graph_.tasks.AddTimer(0);
  const int32_t end = graph_.tasks.AddTimer(0);
  const int32_t before = std::exchange(last_step_gather_[rank], end);
  if (before != PipelineGraph::kNone) graph_.tasks.AddEdge(before, start);
  const Copies& copies = CopiesOf({rank}, t);
  AddPiece(copies, part_of(1 / num_buckets), start, first_end);
  if (num_buckets > 1) {
    AddPiece(copies, part_of(1 - 1 / num_buckets), first_end, end);
  } else {
    graph_.tasks.AddEdge(first_end, end);
  }
  for (int r = 0; r < place_.data; ++r) {
    const int gpu = place_.index(r, rank, t);
    graph_.steps.gathers[{gpu, step}] = {start, end};
    AddEdgeTo(first_end, gpu, first);
    graph_.steps.early_gathers[{gpu, first}] = {start, first_end};
    if (num_buckets == 1 || first + 1 == std::ssize(actions)) continue;
    AddEdgeToNext(end, gpu, first);
    graph_.steps.early_gathers.try_emplace({gpu, first + 1},
                                           CollectiveSpan{first_end, end});
  }
}

int32_t GraphBuilder::StepOfStage(int rank, int stage, int update) const {
  const auto& steps = graph_.steps.plan[rank];
  const auto at =
      std::find_if(steps.begin(), steps.end(), [&](const Step& step) {
        return step.stage == stage && step.update == update;
      });
  return at == steps.end() ? PipelineGraph::kNone
                           : static_cast<int32_t>(at - steps.begin());
}

void GraphBuilder::AddTiedReductions() {
  const int last_stage = in_.costs.tied_stage;
  // Without flush the two stages are at different updates: not modeled.
  if (in_.costs.tied_gradient_bytes == 0 || !schedule_.flush ||
      schedule_.forward_only) {
    return;
  }
  const std::vector<int> first = schedule_.RanksOf(0);
  const std::vector<int> last = schedule_.RanksOf(last_stage);
  if (first.size() != 1 || last.size() != 1 || first == last) return;
  const int ranks[] = {first[0], last[0]};
  if (!graph_.steps.first.has_value()) return;
  for (int update = 0; update < schedule_.num_batches; ++update) {
    const int32_t steps[] = {StepOfStage(ranks[0], 0, update),
                             StepOfStage(ranks[1], last_stage, update)};
    if (steps[0] == PipelineGraph::kNone || steps[1] == PipelineGraph::kNone)
      return;
    for (int r = 0; r < place_.data; ++r) {
      for (int t = 0; t < place_.tensor; ++t) {
        AddTiedReduction(r, t, ranks, steps);
      }
    }
  }
}

void GraphBuilder::AddTiedReduction(int replica, int t, const int (&ranks)[2],
                                    const int32_t (&steps)[2]) {
  const int32_t start = graph_.tasks.AddTimer(0);
  const int32_t end = graph_.tasks.AddTimer(0);
  std::vector<int> gpus;
  for (int i : {0, 1}) {
    const int gpu = place_.index(replica, ranks[i], t);
    gpus.push_back(place_.gpus[gpu]);
    const int32_t reduced = graph_.ReduceEnd(gpu, steps[i]);
    const Step& step = graph_.steps.plan[ranks[i]][steps[i]];
    graph_.tasks.AddEdge(reduced != PipelineGraph::kNone
                             ? reduced
                             : graph_.ActionEnd(gpu, step.reduce_after),
                         start);
    graph_.tasks.AddEdge(end, graph_.StepTask(gpu, steps[i]));
    graph_.steps.tied_reductions[{gpu, steps[i]}] = {start, end};
  }
  lowering_.AddCollectives(
      lowering_.GroupOf(gpus,
                        RoleOf(InstanceRole::Kind::kTied,
                               place_.index(replica, ranks[0], t), ranks[1])),
      {models::CollectiveKind::kAllReduce, in_.costs.tied_gradient_bytes},
      start, end);
}

}  // namespace weir::sim
