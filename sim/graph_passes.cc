// SPDX-License-Identifier: Apache-2.0
// What the GPUs of a tensor-parallel group, and those that share out experts,
// do together inside a pass.
#include <algorithm>

#include "sim/graph_builder.h"

namespace weir {
namespace {

CollectiveKind KindOf(LayerCollective::Kind kind) {
  switch (kind) {
    case LayerCollective::Kind::kAllGather:
      return CollectiveKind::kAllGather;
    case LayerCollective::Kind::kReduceScatter:
      return CollectiveKind::kReduceScatter;
    case LayerCollective::Kind::kAllToAll:
      return CollectiveKind::kAllToAll;
    default:
      return CollectiveKind::kAllReduce;
  }
}

}  // namespace

bool GraphBuilder::CallsExperts() const {
  if (in_.costs.expert_parallel == 1) return false;
  for (const StageCosts& stage : in_.costs.stages) {
    for (const LayerCollective& collective : stage.forward_collectives) {
      if (collective.group == LayerCollective::Group::kExpert) return true;
    }
  }
  return false;
}

void GraphBuilder::AddCollectivesOf(const Action& action,
                                    PassCollectives* collectives) {
  const bool forward = action.op == Op::kForward;
  if (!forward && !MakesInputGradient(action.op)) return;
  const StageCosts& stage = in_.costs.stages[action.stage];
  // Split backwards have no weight gradient to hide behind.
  const bool fused = action.op == Op::kBackward;
  for (const LayerCollective& one :
       forward ? stage.forward_collectives : stage.backward_collectives) {
    const Collectives calls = {KindOf(one.kind),
                               one.bytes * action.num_microbatches,
                               static_cast<double>(one.count)};
    if (one.group == LayerCollective::Group::kExpert) {
      if (in_.costs.expert_parallel > 1) collectives->experts.push_back(calls);
    } else if (place_.tensor > 1) {
      const bool hides = one.overlaps_input_gradient ||
                         (one.overlaps_weight_gradient && fused);
      (hides ? collectives->beside : collectives->in_line).push_back(calls);
    }
  }
}

GraphBuilder::PassGroup GraphBuilder::PassGroupOf(int rank, int replica) {
  const int num_replicas = CallsExperts() ? in_.costs.expert_parallel : 1;
  PassGroup group;
  for (int r = replica; r < replica + num_replicas; ++r) {
    group.firsts.push_back(place_.index(r, rank, 0));
  }
  const auto members = [&](int first) {
    return std::vector<int>(place_.gpus.begin() + first,
                            place_.gpus.begin() + first + place_.tensor);
  };
  for (int first : group.firsts) {
    if (place_.tensor > 1)
      group.tensors.push_back(ways_.GroupOf(members(first)));
  }
  if (num_replicas == 1) return group;
  for (int t = 0; t < place_.tensor; ++t) {
    std::vector<int> gpus;
    for (int first : group.firsts) gpus.push_back(place_.gpus[first + t]);
    group.experts.push_back(ways_.GroupOf(gpus));
  }
  return group;
}

void GraphBuilder::AddPassEnds() {
  if (place_.tensor > 1 || in_.costs.shards > 1 || CallsExperts()) {
    for (int gpu = 0; gpu < place_.num_gpus(); gpu += place_.tensor) {
      graph_.first_group_end.push_back(
          graph_.tasks.AddTimers(std::ssize(Actions(gpu))));
    }
  }
  const int num_replicas = CallsExperts() ? in_.costs.expert_parallel : 1;
  for (int replica = 0; replica < place_.data; replica += num_replicas) {
    for (int rank = 0; rank < place_.pipeline; ++rank) {
      const PassGroup group = PassGroupOf(rank, replica);
      const auto& actions = schedule_.rank_actions[rank];
      for (size_t i = 0; i < actions.size(); ++i) {
        AddEndOf(group, i);
        if (actions[i].overlaps_next) ++i;
      }
    }
  }
}

void GraphBuilder::AddEndOf(const PassGroup& group, size_t position) {
  const std::vector<Action>& actions = Actions(group.firsts[0]);
  PassCollectives collectives;
  AddCollectivesOf(actions[position], &collectives);
  std::vector<int32_t> ends;
  const bool pair = actions[position].overlaps_next;
  if (pair) AddCollectivesOf(actions[position + 1], &collectives);
  WaitForHost(group, position, collectives);
  if (graph_.first_group_end.empty()) return;
  for (int first : group.firsts) {
    const int32_t end = graph_.ActionEnd(first, static_cast<int>(position));
    ends.push_back(end);
    if (pair) ends.push_back(end + 1);
  }
  if (!collectives.empty()) {
    AddJoined(group, position, collectives, ends);
    return;
  }
  const size_t ends_each = ends.size() / group.firsts.size();
  for (size_t r = 0; r < group.firsts.size(); ++r) {
    for (int t = 0; t < place_.tensor; ++t) {
      graph_.tasks.AddEdge(
          graph_.ActionTask(group.firsts[r] + t, static_cast<int>(position)),
          ends[r * ends_each]);
    }
    if (pair) graph_.tasks.AddEdge(ends[r * 2], ends[r * 2 + 1]);
  }
}

void GraphBuilder::AddJoined(const PassGroup& group, size_t position,
                             const PassCollectives& collectives,
                             const std::vector<int32_t>& ends) {
  const auto at = static_cast<int>(position);
  const size_t ends_each = ends.size() / group.firsts.size();
  std::vector<int32_t> waits;  // before the experts' collectives
  for (size_t r = 0; r < group.firsts.size(); ++r) {
    const int first = group.firsts[r];
    const int32_t join = graph_.tasks.AddTimer(0);
    std::vector<int> members;
    for (int t = 0; t < place_.tensor; ++t) {
      members.push_back(first + t);
      graph_.tasks.AddEdge(graph_.ActionTask(first + t, at), join);
    }
    std::vector<int32_t> after(ends.begin() + r * ends_each,
                               ends.begin() + (r + 1) * ends_each);
    if (!collectives.experts.empty()) {
      after = {graph_.tasks.AddTimer(0)};
      waits.push_back(after[0]);
    }
    if (collectives.in_line.empty()) {
      for (int32_t task : after) graph_.tasks.AddEdge(join, task);
    } else {
      ways_.AddCollectives(group.tensors[r], collectives.in_line, join, after);
    }
    if (collectives.beside.empty()) continue;
    const int32_t end = graph_.tasks.AddTimer(0);
    ways_.AddCollectives(group.tensors[r], collectives.beside,
                         AddBeside(members, at, 0), {&end, 1});
    for (int32_t task : after) graph_.tasks.AddEdge(end, task);
  }
  if (collectives.experts.empty()) return;
  ways_.set_role(CallRole::kExpert);
  const int32_t join = graph_.tasks.AddTimer(0);
  for (int32_t task : waits) graph_.tasks.AddEdge(task, join);
  for (int32_t task : ends) graph_.expert_start[task] = join;
  for (const Group& experts : group.experts) {
    const int32_t end = graph_.tasks.AddTimer(0);
    ways_.AddCollectives(experts, collectives.experts, join, {&end, 1});
    for (int32_t task : ends) graph_.tasks.AddEdge(end, task);
  }
  ways_.set_role(CallRole::kTensor);
}

void GraphBuilder::WaitForHost(const PassGroup& group, size_t position,
                               const PassCollectives& collectives) {
  const std::vector<Action>& actions = Actions(group.firsts[0]);
  const int num_passes = actions[position].overlaps_next ? 2 : 1;
  double host_seconds = 0;
  for (int i = 0; i < num_passes; ++i) {
    const Action& action = actions[position + i];
    host_seconds += in_.costs.stages[action.stage].host_seconds_of(
        static_cast<int>(action.op));
  }
  if (host_seconds == 0) return;
  double alone = 0;
  if (!collectives.in_line.empty()) {
    alone += ways_.SecondsAlone(group.tensors[0], collectives.in_line);
  }
  if (!collectives.experts.empty()) {
    alone += ways_.SecondsAlone(group.experts[0], collectives.experts);
  }
  for (int first : group.firsts) {
    for (int gpu = first; gpu < first + place_.tensor; ++gpu) {
      for (int i = 0; i < num_passes; ++i) {
        const int32_t task =
            graph_.ActionTask(gpu, static_cast<int>(position) + i);
        graph_.tasks.SetSeconds(
            task, std::max(graph_.tasks.amount(task), host_seconds - alone));
      }
    }
  }
}

}  // namespace weir
