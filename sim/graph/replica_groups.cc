// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/replica_groups.h"

#include <numeric>

namespace weir::sim {

ReplicaGroups::ReplicaGroups(const Costs& costs,
                             const scenarios::Placement& placement)
    : ReplicaGroups(costs.expert_parallel, costs.expert_tensor,
                    costs.shard_replicas, placement) {}

ReplicaGroups::ReplicaGroups(int expert_parallel, int expert_tensor,
                             int shard_replicas,
                             const scenarios::Placement& placement)
    : placement_(placement),
      tensor_(placement.tensor),
      expert_parallel_(expert_parallel),
      expert_tensor_(expert_tensor > 0 ? expert_tensor : placement.tensor),
      shard_replicas_(shard_replicas) {}

int ReplicaGroups::replicas_of_exchange() const {
  return std::lcm(block(), tensor_) / tensor_;
}

std::vector<GpuRun> ReplicaGroups::Exchanges(int first_gpu,
                                             int num_gpus) const {
  std::vector<GpuRun> runs;
  for (int first = first_gpu; first < first_gpu + num_gpus; first += block()) {
    for (int i = 0; i < expert_tensor_; ++i) {
      runs.push_back({first + i, expert_parallel_, expert_tensor_});
    }
  }
  return runs;
}

std::vector<GpuRun> ReplicaGroups::ExpertTensors(int first_gpu,
                                                 int num_gpus) const {
  std::vector<GpuRun> runs;
  for (int first = first_gpu; first < first_gpu + num_gpus;
       first += expert_tensor_) {
    runs.push_back({first, expert_tensor_, 1});
  }
  return runs;
}

std::vector<GpuRun> ReplicaGroups::Copies(int tensor_rank) const {
  std::vector<GpuRun> runs;
  for (int group = 0; group < shard_replicas_; ++group) {
    runs.push_back(
        {group * shard_gpus() + tensor_rank, shard_gpus() / tensor_, tensor_});
  }
  return runs;
}

std::vector<GpuRun> ReplicaGroups::ExpertCopies(int tensor_rank) const {
  std::vector<GpuRun> runs;
  if (!experts_differ() || (crosses_tensor() && tensor_rank > 0)) return runs;
  for (int group = 0; group < shard_replicas_; ++group) {
    for (int part = 0; part < block(); ++part) {
      if (!crosses_tensor() && part % tensor_ != tensor_rank) continue;
      runs.push_back(
          {group * shard_gpus() + part, shard_gpus() / block(), block()});
    }
  }
  return runs;
}

std::vector<GpuRun> ReplicaGroups::ShardCopies(int tensor_rank) const {
  std::vector<GpuRun> runs;
  if (shard_replicas_ == 1) return runs;
  for (int first = tensor_rank; first < shard_gpus(); first += tensor_) {
    runs.push_back({first, shard_replicas_, shard_gpus()});
  }
  return runs;
}

std::vector<int> ReplicaGroups::GpusOf(const GpuRun& run,
                                       const std::vector<int>& ranks) const {
  std::vector<int> gpus;
  for (const int rank : ranks) {
    for (int i = 0; i < run.count; ++i) {
      const int gpu = run.first + i * run.stride;
      gpus.push_back(placement_.gpu(ReplicaOf(gpu), rank, TensorRankOf(gpu)));
    }
  }
  return gpus;
}

}  // namespace weir::sim
