// SPDX-License-Identifier: Apache-2.0
// What ranks do together: tensor-parallel collectives, reductions of gradients,
// gathers of sharded weights.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "sim/graph_builder.h"

namespace weir {
namespace {

constexpr int32_t kNone = PipelineGraph::kNone;

}  // namespace

void GraphBuilder::SelectReductions() {
  std::vector<Reduction> all = PlanReductions(graph_.steps);
  const auto meets = [&](const Reduction& reduction) {
    return reduction.members.size() * place_.data > 1;
  };
  const bool reduces =
      std::any_of(all.begin(), all.end(), [&](const Reduction& reduction) {
        return meets(reduction) &&
               (in_.costs.stages[reduction.stage].gradient_bytes > 0 ||
                (!schedule_.flush && reduction.members.size() > 1));
      });
  if (!reduces) return;
  for (const auto& steps : graph_.steps) {
    graph_.step_reduction.emplace_back(steps.size(), kNone);
  }
  for (Reduction& reduction : all) {
    if (!meets(reduction)) continue;
    const auto index = static_cast<int32_t>(graph_.reductions.size());
    for (const Reduction::Member& member : reduction.members) {
      graph_.step_reduction[member.rank][member.step] = index;
    }
    graph_.reductions.push_back(std::move(reduction));
  }
}

GraphBuilder::Collective GraphBuilder::CollectiveOf(
    const Action& action) const {
  const StageCosts& stage = in_.costs.stages[action.stage];
  if (action.op == Op::kForward) {
    return {stage.tensor_forward_bytes * action.num_microbatches,
            stage.tensor_forward_collectives};
  }
  if (!MakesInputGradient(action.op)) return {};
  return {stage.tensor_backward_bytes * action.num_microbatches,
          stage.tensor_backward_collectives};
}

void GraphBuilder::AddTensorCollectives() {
  if (place_.tensor == 1) return;
  for (int first = 0; first < place_.num_gpus(); first += place_.tensor) {
    const auto& actions = Actions(first);
    const RingSet rings =
        ways_.RingsOver({place_.gpus.begin() + first,
                         place_.gpus.begin() + first + place_.tensor});
    const int32_t ends =
        graph_.tasks.AddTimers(static_cast<int64_t>(actions.size()));
    graph_.first_group_end.push_back(ends);
    for (size_t i = 0; i < actions.size(); ++i) {
      const auto end = static_cast<int32_t>(ends + i);
      if (actions[i].overlaps_next) {
        AddPairCollective(first, i, rings, end);
        ++i;
      } else {
        AddCollective(first, i, rings, CollectiveOf(actions[i]), {end});
      }
    }
  }
}

void GraphBuilder::AddPairCollective(int first, size_t i, const RingSet& rings,
                                     int32_t end) {
  const Collective one = CollectiveOf(Actions(first)[i]);
  const Collective other = CollectiveOf(Actions(first)[i + 1]);
  const Collective both = {one.bytes + other.bytes, one.count + other.count};
  AddCollective(first, i, rings, both, {end, end + 1});
}

void GraphBuilder::AddCollective(int first, size_t i, const RingSet& rings,
                                 const Collective& collective,
                                 std::initializer_list<int32_t> ends) {
  const bool collects = collective.count > 0;
  const int32_t join = collects ? graph_.tasks.AddTimer(0) : *ends.begin();
  for (int t = 0; t < place_.tensor; ++t) {
    graph_.tasks.AddEdge(graph_.ActionTask(first + t, i), join);
  }
  if (collects) {
    ways_.AddCollective(rings, kTwice, collective.bytes, collective.count, join,
                        ends);
  } else if (ends.size() > 1) {
    graph_.tasks.AddEdge(join, join + 1);
  }
}

void GraphBuilder::AddReductions() {
  if (graph_.reductions.empty()) return;
  const auto count = static_cast<int64_t>(graph_.reductions.size());
  for (int t = 0; t < place_.tensor; ++t) {
    graph_.first_reduce_start.push_back(graph_.tasks.AddTimers(count));
    graph_.first_reduce_end.push_back(graph_.tasks.AddTimers(count));
    absl::flat_hash_map<std::vector<int>, RingSet> rings;  // by ranks
    // One communicator for the replicas of a rank and one for the copies of
    // a stage: what each does, it does one after the other.
    std::vector<int32_t> last_of_rank(schedule_.num_ranks, kNone);
    std::vector<int32_t> last_of_stage(schedule_.num_stages, kNone);
    for (int32_t i = 0; i < count; ++i) {
      const Reduction& reduction = graph_.reductions[i];
      std::vector<int> ranks;
      for (const auto& member : reduction.members) {
        ranks.push_back(member.rank);
      }
      const RingSet* over = nullptr;
      if (in_.costs.stages[reduction.stage].gradient_bytes > 0) {
        const auto [at, added] = rings.try_emplace(ranks);
        if (added) at->second = RingsOverCopies(ranks, t);
        over = &at->second;
      }
      AddReduction(reduction, t, i, over,
                   ranks.size() == 1 ? &last_of_rank[ranks[0]]
                                     : &last_of_stage[reduction.stage]);
    }
  }
}

RingSet GraphBuilder::RingsOverCopies(const std::vector<int>& ranks, int t) {
  std::vector<int> gpus;
  for (int rank : ranks) {
    for (int r = 0; r < place_.data; ++r) {
      gpus.push_back(place_.gpu(r, rank, t));
    }
  }
  return ways_.RingsOver(gpus);
}

void GraphBuilder::AddReduction(const Reduction& reduction, int t,
                                int32_t index, const RingSet* rings,
                                int32_t* last) {
  const int32_t start = graph_.first_reduce_start[t] + index;
  const int32_t end = graph_.first_reduce_end[t] + index;
  for (const auto& [rank, step] : reduction.members) {
    for (int r = 0; r < place_.data; ++r) {
      const int gpu = place_.index(r, rank, t);
      graph_.tasks.AddEdge(
          graph_.ActionEnd(gpu, graph_.steps[rank][step].reduce_after), start);
      graph_.tasks.AddEdge(end, graph_.StepTask(gpu, step));
    }
  }
  if (*last != kNone) graph_.tasks.AddEdge(*last, start);
  *last = end;
  if (rings == nullptr) {
    graph_.tasks.AddEdge(start, end);
    return;
  }
  // Shards are only reduced to where they belong.
  const bool scatters = in_.costs.shards > 1 && reduction.members.size() == 1;
  ways_.AddCollective(*rings, scatters ? kOnce : kTwice,
                      in_.costs.stages[reduction.stage].gradient_bytes, 1,
                      start, {end});
}

void GraphBuilder::AddGathers() {
  if (in_.costs.shards == 1) return;
  graph_.weight_runs = PlanWeightRuns(schedule_);
  for (int rank = 0; rank < place_.pipeline; ++rank) {
    const auto& runs = graph_.weight_runs[rank];
    const auto count = static_cast<int64_t>(runs.size());
    for (int t = 0; t < place_.tensor; ++t) {
      const RingSet rings = RingsOverCopies({rank}, t);
      const int32_t starts = graph_.tasks.AddTimers(count);
      const int32_t ends = graph_.tasks.AddTimers(count);
      graph_.first_gather_start.push_back(starts);
      graph_.first_gather_end.push_back(ends);
      for (int32_t i = 0; i < count; ++i) {
        if (i > 0) graph_.tasks.AddEdge(ends + i - 1, starts + i);
        for (int r = 0; r < place_.data; ++r) {
          const int gpu = place_.index(r, rank, t);
          if (i > 1) {
            graph_.tasks.AddEdge(graph_.ActionEnd(gpu, runs[i - 2].last),
                                 starts + i);
          }
          AddEdgeTo(ends + i, gpu, runs[i].first);
        }
        ways_.AddCollective(rings, kOnce,
                            in_.costs.stages[runs[i].stage].weight_bytes, 1,
                            starts + i, {ends + i});
      }
    }
  }
}

}  // namespace weir
