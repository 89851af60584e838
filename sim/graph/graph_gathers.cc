// SPDX-License-Identifier: Apache-2.0
// Gathers of sharded weights.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/graph/graph_builder.h"

namespace weir::sim {
ShardGathers CollectivesOfGather(const PipelineInputs& inputs,
                                 const StageCosts& stage, bool forward) {
  const ShardCalls& shard = inputs.costs.shard_calls;
  const PassGathers& pass = forward ? shard.forward : shard.backward;
  const double experts =
      ReplicaGroups(inputs.costs, inputs.placement_of_all()).experts_differ()
          ? stage.parameters.gathered_expert_bytes
          : 0;
  const double first_experts =
      experts > 0 ? stage.parameters.first_gathered_expert_bytes(forward) : 0;
  const double first =
      stage.parameters.first_gathered_bytes(forward) - first_experts;
  const double others = stage.parameters.gathered_bytes() - experts - first;
  const double other_experts = experts - first_experts;
  const double num_others = stage.parameters.num_layers - 1;
  const auto calls_of = [](double bytes, double count) {
    return Collectives{models::CollectiveKind::kAllGather,
                       count > 0 ? bytes / count : 0, count};
  };
  ShardGathers calls;
  calls.before = {
      calls_of(first, pass.calls),
      calls_of(others * pass.exposed_bytes, num_others * pass.exposed_calls)};
  calls.overlapped = calls_of(others * (pass.bytes - pass.exposed_bytes),
                              num_others * (pass.calls - pass.exposed_calls));
  if (experts > 0) {
    calls.experts_before = {calls_of(first_experts, pass.calls),
                            calls_of(other_experts * pass.exposed_bytes,
                                     num_others * pass.exposed_calls)};
    calls.experts_overlapped =
        calls_of(other_experts * (pass.bytes - pass.exposed_bytes),
                 num_others * (pass.calls - pass.exposed_calls));
  }
  calls.host_seconds = calls.before[1].count * shard.list_seconds;
  calls.exposed = pass.exposed_calls > 0;
  return calls;
}

void GraphBuilder::AddGathers() {
  if (in_.costs.shards == 1) return;
  GatherTasks& gathers = graph_.gathers.emplace();
  gathers.runs = PlanWeightRuns(schedule_);
  for (int rank = 0; rank < place_.pipeline; ++rank) {
    const auto count = std::ssize(gathers.runs[rank]);
    for (int t = 0; t < place_.tensor; ++t) {
      const Copies& copies = CopiesOf(std::vector<int>{rank}, t);
      const int32_t starts = graph_.tasks.AddTimers(count);
      const int32_t ends = graph_.tasks.AddTimers(count);
      gathers.first_start.push_back(starts);
      gathers.first_end.push_back(ends);
      std::vector<CollectiveSpan>& layers = gathers.layers.emplace_back(count);
      std::vector<int32_t> last;  // ends of the previous runs' gathers
      for (int32_t i = 0; i < count; ++i) {
        if (StartsWithTheOneBefore(rank, i)) {
          graph_.tasks.AddEdge(ends + i - 1, starts + i);
        } else {
          for (int32_t end : last) graph_.tasks.AddEdge(end, starts + i);
          last.clear();
        }
        layers[i] = AddGather(copies, rank, t, i, starts + i, ends + i);
        last.push_back(layers[i].end != PipelineGraph::kNone ? layers[i].end
                                                             : ends + i);
      }
    }
  }
}

bool GraphBuilder::StartsWithTheOneBefore(int rank, int32_t run) const {
  if (run == 0) return false;
  const auto& runs = graph_.gathers->runs[rank];
  const int32_t before = runs[run - 1].first;
  return runs[run].first == before + 1 &&
         schedule_.rank_actions[rank][before].overlaps_next;
}

void GraphBuilder::AddWeightGathers(const Copies& copies,
                                    std::span<const Collectives> dense,
                                    std::span<const Collectives> experts,
                                    int32_t start, int32_t end) {
  const bool both = std::any_of(
      experts.begin(), experts.end(),
      [](const Collectives& one) { return one.bytes * one.count > 0; });
  const int32_t next = both ? graph_.tasks.AddTimer(0) : end;
  if (copies.all.size() == 1) {
    lowering_.AddCollectives(copies.all[0], dense, start, next);
  } else {
    AddToAll(copies.all, dense, start, next);
  }
  if (both) AddToAll(copies.experts, experts, next, end);
}

CollectiveSpan GraphBuilder::AddGather(const Copies& copies, int rank, int t,
                                       int32_t i, int32_t start, int32_t end) {
  const auto& runs = graph_.gathers->runs[rank];
  const StageCosts& stage = in_.costs.stages[runs[i].stage];
  const int32_t pass = runs[i].first;
  const bool forward =
      schedule_.rank_actions[rank][pass].op == schedules::Op::kForward;
  std::vector<int> gpus;
  for (int r = 0; r < place_.data; ++r) {
    gpus.push_back(place_.index(r, rank, t));
  }
  CollectiveSpan layers;
  const ShardGathers calls = CollectivesOfGather(in_, stage, forward);
  if (calls.overlapped.count > 0) {
    layers = {AddOverlapped(gpus, pass, 0), graph_.tasks.AddTimer(0)};
    AddWeightGathers(copies, {&calls.overlapped, 1},
                     {&calls.experts_overlapped, 1}, layers.start, layers.end);
    for (int gpu : gpus) AddEdgeToEnd(layers.end, gpu, pass);
  }
  const size_t num_before = calls.before[1].count > 0 ? 2 : 1;
  AddWeightGathers(copies, std::span(calls.before).first(num_before),
                   std::span(calls.experts_before).first(num_before), start,
                   end);
  if (calls.host_seconds > 0) {
    const int32_t host = graph_.tasks.AddTimer(calls.host_seconds);
    graph_.tasks.AddEdge(start, host);
    graph_.tasks.AddEdge(host, end);
  }
  // Weights of one run are gathered ahead, except where gathers are exposed. A
  // pair waits for the gathers of both of its passes, which therefore cannot
  // wait for its end.
  const int32_t previous = i > 0 ? runs[i - 1].last : -1;
  const bool completes_pair =
      i > 0 && previous + 1 == pass &&
      schedule_.rank_actions[rank][previous].overlaps_next;
  const int32_t ahead = calls.exposed && !completes_pair ? 1 : 2;
  for (int gpu : gpus) {
    if (i >= ahead) {
      graph_.tasks.AddEdge(graph_.ActionEnd(gpu, runs[i - ahead].last), start);
    }
    AddEdgeTo(end, gpu, pass);
  }
  return layers;
}

}  // namespace weir::sim
