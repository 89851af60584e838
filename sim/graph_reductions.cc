// SPDX-License-Identifier: Apache-2.0
// What replicas do together: reductions of gradients, gathers of weights.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "sim/graph_builder.h"

namespace weir {
namespace {

constexpr int32_t kNone = PipelineGraph::kNone;

// More pieces hardly end earlier, but cost as many flows again.
constexpr int kMaxPieces = 8;

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

void GraphBuilder::AddReductions() {
  if (graph_.reductions.empty()) return;
  const auto count = static_cast<int64_t>(graph_.reductions.size());
  for (int t = 0; t < place_.tensor; ++t) {
    graph_.first_reduce_start.push_back(graph_.tasks.AddTimers(count));
    graph_.first_reduce_end.push_back(graph_.tasks.AddTimers(count));
    absl::flat_hash_map<std::vector<int>, Group> groups;  // by ranks
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
      const Group* over = nullptr;
      if (in_.costs.stages[reduction.stage].gradient_bytes > 0) {
        const auto [at, added] = groups.try_emplace(ranks);
        if (added) at->second = GroupOfCopies(ranks, t);
        over = &at->second;
      }
      AddReduction(reduction, t, i, over,
                   ranks.size() == 1 ? &last_of_rank[ranks[0]]
                                     : &last_of_stage[reduction.stage]);
    }
  }
}

Group GraphBuilder::GroupOfCopies(const std::vector<int>& ranks, int t) {
  std::vector<int> gpus;
  for (int rank : ranks) {
    for (int r = 0; r < place_.data; ++r) {
      gpus.push_back(place_.gpu(r, rank, t));
    }
  }
  return ways_.GroupOf(gpus);
}

void GraphBuilder::AddReduction(const Reduction& reduction, int t,
                                int32_t index, const Group* group,
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
  int32_t before = std::exchange(*last, end);
  if (group == nullptr) {
    if (before != kNone) graph_.tasks.AddEdge(before, start);
    graph_.tasks.AddEdge(start, end);
    return;
  }
  const StageCosts& stage = in_.costs.stages[reduction.stage];
  // Shards are only reduced to where they belong.
  const bool scatters = in_.costs.shards * in_.costs.optimizer_shards > 1 &&
                        reduction.members.size() == 1;
  Collectives piece;
  piece.kind =
      scatters ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  const double dense_bytes = stage.gradient_bytes - stage.expert_gradient_bytes;
  int num_pieces = 1;
  piece.bytes = dense_bytes;
  if (in_.communication.gradient_reduction() == REDUCTION_OVERLAPPED ||
      in_.costs.shards > 1) {
    const double num_calls =
        in_.costs.shards > 1
            ? stage.num_parameter_layers
            : std::max(std::ceil(dense_bytes / in_.costs.bucket_bytes), 1.0);
    num_pieces = static_cast<int>(std::min<double>(num_calls, kMaxPieces));
    piece.bytes = dense_bytes / num_calls;
    piece.count = num_calls / num_pieces;
  }
  before = AddEarlyPieces(reduction, t, *group, piece, num_pieces, before);
  if (before != kNone) graph_.tasks.AddEdge(before, start);
  if (stage.expert_gradient_bytes > 0) {
    const int32_t dense_end = graph_.tasks.AddTimer(0);
    ways_.AddCollectives(*group, piece, start, dense_end);
    ReduceExperts(reduction, t, dense_end, end);
  } else {
    ways_.AddCollectives(*group, piece, start, end);
  }
  if (in_.costs.optimizer_shards > 1 && scatters) {
    GatherSteppedWeights(reduction, t, *group);
  }
}

int32_t GraphBuilder::AddEarlyPieces(const Reduction& reduction, int t,
                                     const Group& group,
                                     const Collectives& piece, int num_pieces,
                                     int32_t last) {
  for (int k = 1; k < num_pieces; ++k) {
    const int32_t start = graph_.tasks.AddTimer(0);
    for (const auto& [rank, step] : reduction.members) {
      const int position = graph_.steps[rank][step].reduce_after;
      for (int r = 0; r < place_.data; ++r) {
        const int gpu = place_.index(r, rank, t);
        const double seconds =
            graph_.tasks.amount(graph_.ActionTask(gpu, position));
        graph_.tasks.AddEdge(
            AddBeside({gpu}, position, seconds * k / num_pieces), start);
      }
    }
    if (last != kNone) graph_.tasks.AddEdge(last, start);
    last = graph_.tasks.AddTimer(0);
    ways_.AddCollectives(group, piece, start, last);
  }
  return last;
}

// Of an expert's gradients there is one in so many replicas.
void GraphBuilder::ReduceExperts(const Reduction& reduction, int t,
                                 int32_t before, int32_t after) {
  const int num_parts = in_.costs.expert_parallel;
  const double bytes = in_.costs.stages[reduction.stage].expert_gradient_bytes;
  for (int part = 0; part < num_parts; ++part) {
    std::vector<int> gpus;
    for (const auto& member : reduction.members) {
      for (int r = part; r < place_.data; r += num_parts) {
        gpus.push_back(place_.gpu(r, member.rank, t));
      }
    }
    const int32_t end = graph_.tasks.AddTimer(0);
    if (gpus.size() > 1) {
      ways_.AddCollectives(ways_.GroupOf(gpus),
                           {CollectiveKind::kAllReduce, bytes, 1}, before, end);
    } else {
      graph_.tasks.AddEdge(before, end);
    }
    graph_.tasks.AddEdge(end, after);
  }
}

void GraphBuilder::GatherSteppedWeights(const Reduction& reduction, int t,
                                        const Group& group) {
  const int32_t start = graph_.tasks.AddTimer(0);
  const int32_t end = graph_.tasks.AddTimer(0);
  for (const auto& [rank, step] : reduction.members) {
    for (int r = 0; r < place_.data; ++r) {
      graph_.tasks.AddEdge(graph_.StepTask(place_.index(r, rank, t), step),
                           start);
    }
  }
  ways_.AddCollectives(group,
                       {CollectiveKind::kAllGather,
                        in_.costs.stages[reduction.stage].weight_bytes, 1},
                       start, end);
}

int32_t GraphBuilder::StepOfStage(int rank, int stage) const {
  const auto& steps = graph_.steps[rank];
  const auto at =
      std::find_if(steps.begin(), steps.end(),
                   [&](const Step& step) { return step.stage == stage; });
  return at == steps.end() ? kNone : static_cast<int32_t>(at - steps.begin());
}

void GraphBuilder::AddTiedReductions() {
  const int last_stage = schedule_.num_stages - 1;
  const double bytes = in_.costs.tied_gradient_bytes;
  // Without flush the two stages are at different updates: not modelled.
  if (bytes == 0 || !schedule_.flush || schedule_.forward_only) return;
  const std::vector<int> first = schedule_.RanksOf(0);
  const std::vector<int> last = schedule_.RanksOf(last_stage);
  if (first.size() != 1 || last.size() != 1 || first == last) return;
  const int steps[] = {StepOfStage(first[0], 0),
                       StepOfStage(last[0], last_stage)};
  const int ranks[] = {first[0], last[0]};
  if (steps[0] == kNone || steps[1] == kNone) return;
  for (int r = 0; r < place_.data; ++r) {
    for (int t = 0; t < place_.tensor; ++t) {
      const int32_t start = graph_.tasks.AddTimer(0);
      const int32_t end = graph_.tasks.AddTimer(0);
      std::vector<int> gpus;
      for (int i : {0, 1}) {
        const int gpu = place_.index(r, ranks[i], t);
        if (graph_.first_step[gpu] == kNone) return;
        gpus.push_back(place_.gpus[gpu]);
        const int32_t reduced = graph_.ReduceEnd(gpu, steps[i]);
        const Step& step = graph_.steps[ranks[i]][steps[i]];
        graph_.tasks.AddEdge(reduced != kNone
                                 ? reduced
                                 : graph_.ActionEnd(gpu, step.reduce_after),
                             start);
        graph_.tasks.AddEdge(end, graph_.StepTask(gpu, steps[i]));
      }
      ways_.AddCollectives(ways_.GroupOf(gpus),
                           {CollectiveKind::kAllReduce, bytes, 1}, start, end);
    }
  }
}

void GraphBuilder::AddGathers() {
  if (in_.costs.shards == 1) return;
  graph_.weight_runs = PlanWeightRuns(schedule_);
  for (int rank = 0; rank < place_.pipeline; ++rank) {
    const auto& runs = graph_.weight_runs[rank];
    const auto count = static_cast<int64_t>(runs.size());
    for (int t = 0; t < place_.tensor; ++t) {
      const Group group = GroupOfCopies({rank}, t);
      const int32_t starts = graph_.tasks.AddTimers(count);
      const int32_t ends = graph_.tasks.AddTimers(count);
      graph_.first_gather_start.push_back(starts);
      graph_.first_gather_end.push_back(ends);
      int32_t last = kNone;
      for (int32_t i = 0; i < count; ++i) {
        if (last != kNone) graph_.tasks.AddEdge(last, starts + i);
        last = AddGather(group, rank, t, i, starts + i, ends + i);
      }
    }
  }
}

int32_t GraphBuilder::AddGather(const Group& group, int rank, int t, int32_t i,
                                int32_t start, int32_t end) {
  const auto& runs = graph_.weight_runs[rank];
  const StageCosts& stage = in_.costs.stages[runs[i].stage];
  Collectives layer;
  layer.kind = CollectiveKind::kAllGather;
  layer.bytes = stage.weight_bytes / stage.num_parameter_layers;
  std::vector<int> gpus;
  for (int r = 0; r < place_.data; ++r) {
    gpus.push_back(place_.index(r, rank, t));
  }
  int32_t last = end;
  if (stage.num_parameter_layers > 1) {
    Collectives others = layer;
    others.count = stage.num_parameter_layers - 1;
    last = graph_.tasks.AddTimer(0);
    ways_.AddCollectives(group, others, AddBeside(gpus, runs[i].first, 0),
                         last);
    for (int gpu : gpus) {
      graph_.tasks.AddEdge(last, graph_.ActionEnd(gpu, runs[i].first));
    }
  }
  ways_.AddCollectives(group, layer, start, end);
  for (int gpu : gpus) {
    if (i > 1) {
      graph_.tasks.AddEdge(graph_.ActionEnd(gpu, runs[i - 2].last), start);
    }
    AddEdgeTo(end, gpu, runs[i].first);
  }
  return last;
}

}  // namespace weir
