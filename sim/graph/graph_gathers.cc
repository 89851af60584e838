// SPDX-License-Identifier: Apache-2.0
// Gathers of sharded weights.
#include <cstdint>
#include <vector>

#include "sim/graph/graph_builder.h"

namespace weir::sim {
ShardGathers CollectivesOfGather(const PipelineInputs& inputs,
                                 const StageCosts& stage, bool forward) {
  const double num_others = stage.parameters.num_layers - 1;
  const double per_layer = inputs.costs.gathers_per_layer;
  const double first = stage.parameters.first_gathered_bytes(forward);
  ShardGathers calls;
  calls.first = {models::CollectiveKind::kAllGather, first / per_layer,
                 per_layer};
  if (num_others > 0) {
    calls.others = {
        models::CollectiveKind::kAllGather,
        (stage.parameters.weight_bytes - first) / num_others / per_layer,
        num_others * per_layer};
  }
  return calls;
}

void GraphBuilder::AddGathers() {
  if (in_.costs.shards == 1) return;
  GatherTasks& gathers = graph_.gathers.emplace();
  gathers.runs = PlanWeightRuns(schedule_);
  for (int rank = 0; rank < place_.pipeline; ++rank) {
    const auto count = std::ssize(gathers.runs[rank]);
    for (int t = 0; t < place_.tensor; ++t) {
      const Group& group = CopiesOf(std::vector<int>{rank}, t).all;
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
        layers[i] = AddGather(group, rank, t, i, starts + i, ends + i);
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

CollectiveSpan GraphBuilder::AddGather(const Group& group, int rank, int t,
                                       int32_t i, int32_t start, int32_t end) {
  const auto& runs = graph_.gathers->runs[rank];
  const StageCosts& stage = in_.costs.stages[runs[i].stage];
  const int32_t pass = runs[i].first;
  const bool forward =
      schedule_.rank_actions[rank][pass].op == schedules::Op::kForward;
  const int num_others = stage.parameters.num_layers - 1;
  std::vector<int> gpus;
  for (int r = 0; r < place_.data; ++r) {
    gpus.push_back(place_.index(r, rank, t));
  }
  CollectiveSpan layers;
  const ShardGathers calls = CollectivesOfGather(in_, stage, forward);
  if (num_others > 0 && !in_.costs.blocking_gathers) {
    layers = {AddOverlapped(gpus, pass, 0), graph_.tasks.AddTimer(0)};
    lowering_.AddCollectives(group, calls.others, layers.start, layers.end);
    for (int gpu : gpus) AddEdgeToEnd(layers.end, gpu, pass);
  }
  if (num_others > 0 && in_.costs.blocking_gathers) {
    const int32_t first_end = graph_.tasks.AddTimer(0);
    lowering_.AddCollectives(group, calls.first, start, first_end);
    lowering_.AddCollectives(group, calls.others, first_end, end);
  } else {
    lowering_.AddCollectives(group, calls.first, start, end);
  }
  // Weights of one run are gathered ahead, except where gathers block. A pair
  // waits for the gathers of both of its passes.
  const int32_t ahead =
      in_.costs.blocking_gathers && !StartsWithTheOneBefore(rank, i) ? 1 : 2;
  for (int gpu : gpus) {
    if (i >= ahead) {
      graph_.tasks.AddEdge(graph_.ActionEnd(gpu, runs[i - ahead].last), start);
    }
    AddEdgeTo(end, gpu, pass);
  }
  return layers;
}

}  // namespace weir::sim
