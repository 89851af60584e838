// SPDX-License-Identifier: Apache-2.0
// The groups of GPUs that run a pass together.
#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/graph/graph_builder.h"

namespace weir::sim {

bool GraphBuilder::HasExpertCollectives() const {
  if (groups_.block() == 1 ||
      (in_.costs.expert_parallel == 1 && !groups_.folded())) {
    return false;
  }
  for (const StageCosts& stage : in_.costs.stages) {
    for (const models::LayerCollective& collective :
         stage.communication.forward_collectives) {
      if (collective.group == models::LayerCollective::Group::kExpert ||
          collective.group == models::LayerCollective::Group::kExpertTensor) {
        return true;
      }
    }
  }
  return false;
}

int GraphBuilder::ReplicasOfPass() const {
  return std::lcm(HasExpertCollectives() ? groups_.replicas_of_exchange() : 1,
                  in_.costs.context.size());
}

void GraphBuilder::AddExpertGroups(int rank, int replica, PassGroup* group) {
  const int expert_parallel = in_.costs.expert_parallel;
  if (!groups_.folded()) {
    AddReplicaGroups(InstanceRole::Kind::kExperts, expert_parallel, rank,
                     replica, &group->experts);
    return;
  }
  // A folded group joins replicas and tensor ranks, so that either all are in
  // the graph, or one represents them all.
  const auto add = [&](InstanceRole::Kind kind, std::vector<GpuRun> runs,
                       std::vector<Group>* groups) {
    if (in_.gpus.reduced()) runs.resize(1);
    for (const GpuRun& run : runs) {
      InstanceRole role{kind, rank};
      if (!in_.gpus.reduced()) {
        role.replica = groups_.ReplicaOf(run.first);
        role.tensor_rank = groups_.TensorRankOf(run.first);
      }
      groups->push_back(lowering_.GroupOf(groups_.GpusOf(run, {rank}), role));
    }
  };
  const int first = replica * full_placement_.tensor;
  const int count = ReplicasOfPass() * full_placement_.tensor;
  if (expert_parallel > 1) {
    add(InstanceRole::Kind::kExperts, groups_.Exchanges(first, count),
        &group->experts);
  }
  if (in_.costs.expert_tensor > 1) {
    add(InstanceRole::Kind::kExpertTensor, groups_.ExpertTensors(first, count),
        &group->expert_tensors);
  }
}

void GraphBuilder::AddReplicaGroups(InstanceRole::Kind kind, int size, int rank,
                                    int replica, std::vector<Group>* groups) {
  // Either all of these replicas are in the graph, or one represents them all.
  const int end = std::min(replica + ReplicasOfPass(), place_.data);
  for (int first = replica; first < end; first += size) {
    for (int t = 0; t < place_.tensor; ++t) {
      std::vector<int> gpus;
      for (int r = first; r < first + size; ++r) {
        gpus.push_back(full_placement_.gpu(r, rank, in_.gpus.TensorRankOf(t)));
      }
      groups->push_back(lowering_.GroupOf(
          gpus, RoleOf(kind, place_.index(first, rank, 0) + t)));
    }
  }
}

GraphBuilder::PassGroup GraphBuilder::PassGroupOf(int rank, int replica) {
  PassGroup group;
  const ContextGroups& context = in_.costs.context;
  const int end = std::min(replica + ReplicasOfPass(), place_.data);
  for (int r = replica; r < end; ++r) {
    const int first = place_.index(r, rank, 0);
    group.firsts.push_back(first);
    for (int t = 0; context.ring > 1 && t < place_.tensor; ++t) {
      const int from = in_.gpus.ReplicaOf(r);
      const int at = in_.gpus.TensorRankOf(t);
      group.ring.push_back(
          {full_placement_.gpu(from, rank, at),
           full_placement_.gpu(context.NextOf(from), rank, at),
           RoleOf(InstanceRole::Kind::kContextRing, first + t)});
    }
    if (full_placement_.tensor == 1) continue;
    std::vector<int> gpus;
    for (int t = 0; t < full_placement_.tensor; ++t) {
      gpus.push_back(full_placement_.gpu(in_.gpus.ReplicaOf(r), rank, t));
    }
    group.tensors.push_back(
        lowering_.GroupOf(gpus, RoleOf(InstanceRole::Kind::kTensor, first)));
  }
  if (HasExpertCollectives()) AddExpertGroups(rank, replica, &group);
  if (context.neighbors > 1) {
    AddReplicaGroups(InstanceRole::Kind::kContext, context.neighbors, rank,
                     replica, &group.context);
  }
  return group;
}

std::vector<int> GraphBuilder::GpusOf(const PassGroup& group) const {
  std::vector<int> gpus;
  for (int first : group.firsts) {
    for (int t = 0; t < place_.tensor; ++t) gpus.push_back(first + t);
  }
  return gpus;
}

}  // namespace weir::sim
