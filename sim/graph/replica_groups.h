// SPDX-License-Identifier: Apache-2.0
// Groups of the GPUs of one pipeline rank. These GPUs are numbered by replica
// and tensor rank, tensor ranks fastest. Experts use the same GPUs in a grid of
// their own (Liu et al. 2025, MoE Parallel Folding, arXiv:2504.14960):
// `expert_tensor` consecutive GPUs share each expert, and `expert_parallel`
// such groups in a row have all of them.
#ifndef WEIR_SIM_GRAPH_REPLICA_GROUPS_H_
#define WEIR_SIM_GRAPH_REPLICA_GROUPS_H_

#include <vector>

#include "scenarios/cluster/placement.h"
#include "sim/costs/stage_costs.h"

namespace weir::sim {

// `count` GPUs at a distance of `stride`.
struct GpuRun {
  int first = 0, count = 1, stride = 1;
};

class ReplicaGroups {
 public:
  // `costs` gives the sizes of groups, `placement` all GPUs.
  ReplicaGroups(const Costs& costs, const scenarios::Placement& placement);
  // expert_tensor 0: the tensor-parallel size.
  ReplicaGroups(int expert_parallel, int expert_tensor, int shard_replicas,
                const scenarios::Placement& placement);

  // Returns the number of GPUs that have all experts once.
  int block() const { return expert_parallel_ * expert_tensor_; }
  // Returns true if the GPUs of an expert are not a tensor-parallel group.
  bool folded() const { return expert_tensor_ != tensor_; }
  // Returns true if the copies of an expert are not those of other weights.
  bool experts_differ() const { return block() != tensor_; }
  // Returns true if copies of an expert have different tensor ranks.
  bool crosses_tensor() const { return block() % tensor_ != 0; }
  // Returns true if replicas or tensor ranks that a group joins must stay
  // together in a symmetry reduction.
  bool joins_replicas() const {
    return block() > tensor_ || folded() || shard_replicas_ > 1;
  }
  // Returns the number of replicas whose experts are exchanged together.
  int replicas_of_exchange() const;

  // Return groups of the `num_gpus` GPUs from `first_gpu` on: those that
  // exchange tokens, and those that share an expert. The numbers are multiples
  // of block().
  std::vector<GpuRun> Exchanges(int first_gpu, int num_gpus) const;
  std::vector<GpuRun> ExpertTensors(int first_gpu, int num_gpus) const;

  // Return the groups that hold copies of the same weights, outside experts and
  // of experts, on one tensor rank: all copies or, with hybrid sharding, those
  // of each group that shards them. If copies of experts have different tensor
  // ranks, those returned for tensor rank 0 include all of them.
  std::vector<GpuRun> Copies(int tensor_rank) const;
  std::vector<GpuRun> ExpertCopies(int tensor_rank) const;
  // Returns the groups that hold the same shards; none without hybrid sharding.
  std::vector<GpuRun> ShardCopies(int tensor_rank) const;

  // Returns the GPUs of the cluster, on these pipeline ranks.
  std::vector<int> GpusOf(const GpuRun& run,
                          const std::vector<int>& ranks) const;
  int ReplicaOf(int gpu) const { return gpu / tensor_; }
  int TensorRankOf(int gpu) const { return gpu % tensor_; }

 private:
  // Returns the GPUs of a pipeline rank, and those of a group that shards.
  int num_gpus() const { return placement_.data * tensor_; }
  int shard_gpus() const { return num_gpus() / shard_replicas_; }

  const scenarios::Placement& placement_;
  const int tensor_, expert_parallel_, expert_tensor_, shard_replicas_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_REPLICA_GROUPS_H_
