// SPDX-License-Identifier: Apache-2.0
// Collectives of gradient reductions and of gathers after optimizer steps.
#include <algorithm>
#include <cmath>

#include "sim/graph/pipeline_graph.h"
#include "sim/graph/replica_groups.h"

namespace weir::sim {
namespace {

// More pieces would hardly end earlier, but each needs as many flows.
constexpr int kMaxPieces = 8;

// Returns the fraction of a stage's parameters whose copies are not those of
// other parameters.
double ExpertPart(const PipelineInputs& inputs, const StageCosts& stage) {
  if (stage.parameters.gradient_bytes == 0 ||
      !ReplicaGroups(inputs.costs, inputs.placement_of_all())
           .experts_differ()) {
    return 0;
  }
  return stage.parameters.expert_gradient_bytes /
         stage.parameters.gradient_bytes;
}

}  // namespace

ReductionParts PartsOfReduction(const PipelineInputs& inputs,
                                const StageCosts& stage) {
  const Costs& costs = inputs.costs;
  ReductionParts parts;
  if (costs.shards > 1) {
    parts.num_calls =
        stage.parameters.num_layers * costs.shard_calls.reductions;
    if (costs.shard_calls.blocking_reductions) return parts;
  } else if (inputs.communication.gradient_reduction() ==
                 REDUCTION_OVERLAPPED &&
             costs.bucket_bytes > 0) {
    parts.num_calls = std::max(
        std::ceil(stage.parameters.gradient_bytes / costs.bucket_bytes), 1.0);
  }
  parts.num_pieces =
      static_cast<int>(std::min<double>(parts.num_calls, kMaxPieces));
  return parts;
}

ReductionCollectives CollectivesOfReduction(const PipelineInputs& inputs,
                                            const StageCosts& stage,
                                            size_t num_ranks) {
  const auto [num_calls, num_pieces] = PartsOfReduction(inputs, stage);
  // Sharded gradients are only reduced to their owners.
  const bool scatters = (inputs.costs.shards > 1 ||
                         (inputs.costs.optimizer_shards > 1 &&
                          inputs.costs.owned_matrices_per_layer == 0)) &&
                        num_ranks == 1;
  const ShardCalls& shard = inputs.costs.shard_calls;
  const double small = inputs.costs.shards > 1 ? shard.small_part : 0;
  const double bytes =
      stage.parameters.gradient_bytes * (1 - small) / num_calls;
  const double part = ExpertPart(inputs, stage);
  ReductionCollectives calls;
  calls.num_pieces = num_pieces;
  calls.dense = {scatters ? models::CollectiveKind::kReduceScatter
                          : models::CollectiveKind::kAllReduce,
                 bytes * (1 - part), num_calls / num_pieces};
  calls.experts = calls.dense;
  calls.experts.bytes = bytes * part;
  if (small > 0) {
    const double count = stage.parameters.num_layers * shard.small_reductions;
    calls.small = {calls.dense.kind,
                   stage.parameters.gradient_bytes * small / count,
                   count / num_pieces};
  }
  const int groups = inputs.costs.shard_replicas;
  if (scatters && groups > 1) {
    calls.shards = {models::CollectiveKind::kAllReduce,
                    inputs.costs.stepped_part(stage) *
                        stage.parameters.gradient_bytes / num_calls,
                    num_calls / num_pieces};
  }
  return calls;
}

ReductionCollectives CollectivesOfStepGather(const PipelineInputs& inputs,
                                             const StageCosts& stage) {
  const double part = ExpertPart(inputs, stage);
  // NCCL prices a broadcast like an all-gather of its bytes, but for one step
  // of the ring (v2.28.9, src/graph/tuning.cc).
  const double num_matrices =
      stage.parameters.num_layers * inputs.costs.owned_matrices_per_layer;
  const double calls = std::clamp(
      num_matrices, 1.0, std::max(1.0 * inputs.costs.optimizer_shards, 1.0));
  ReductionCollectives gather;
  gather.dense = {models::CollectiveKind::kAllGather,
                  stage.parameters.gathered_bytes() * (1 - part) / calls,
                  calls};
  gather.experts = gather.dense;
  gather.experts.bytes = stage.parameters.gathered_bytes() * part / calls;
  return gather;
}

bool GathersBeforeForward(const PipelineInputs& inputs) {
  return inputs.costs.overlaps_step_gather && inputs.schedule.flush &&
         inputs.schedule.num_batches == 1 && !inputs.schedule.forward_only;
}

}  // namespace weir::sim
