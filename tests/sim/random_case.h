// SPDX-License-Identifier: Apache-2.0
// Random schedules on shared links, with costs of every kind.
#ifndef WEIR_TESTS_SIM_RANDOM_CASE_H_
#define WEIR_TESTS_SIM_RANDOM_CASE_H_

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

#include "scenarios/cluster/placement.h"
#include "schedules/semantics.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/graph/symmetries.h"
#include "tests/sim/measured.h"
#include "tests/sim/random_schedule.h"

namespace weir::sim {

// All GPUs share one switch, and one PCIe switch to the host.
inline Cluster SharedEverything(int num_gpus) {
  Cluster cluster = OneSwitch(num_gpus, 100, 0.01);
  PcieTree* pcie = cluster.mutable_groups(0)->mutable_node()->mutable_pcie();
  PcieTree::Switch* pcie_switch = pcie->add_switches();
  for (int gpu = 0; gpu < num_gpus; ++gpu) pcie_switch->add_gpus(gpu);
  pcie->set_gpu_bytes_per_second(80);
  pcie->set_uplink_bytes_per_second(150);
  return cluster;
}

// Nodes of several GPUs with one slow adapter each.
inline Cluster SharedAdapters(int num_gpus, int gpus_per_node) {
  Cluster cluster = SharedEverything(gpus_per_node);
  NodeGroup* group = cluster.mutable_groups(0);
  group->set_count((num_gpus + gpus_per_node - 1) / gpus_per_node);
  group->mutable_node()->add_nics()->set_bytes_per_second(30);
  cluster.mutable_fabric()->set_latency_seconds(0.02);
  return cluster;
}

class RandomCase {
 public:
  // With `nodes`, there are more replicas, nodes whose GPUs share adapters, and
  // transfers that may block.
  explicit RandomCase(std::mt19937* random, bool nodes = false)
      : schedule_(RandomSchedule(random)),
        semantics_(*schedules::InterpretSchedule(schedule_)) {
    const auto draw = [&](double low, double high) {
      return std::uniform_real_distribution<>(low, high)(*random);
    };
    for (int s = 0; s < schedule_.num_stages; ++s) {
      StageCosts& stage = costs_.stages.emplace_back();
      stage.seconds.forward = draw(0.1, 2);
      BackwardParts& parts = stage.seconds.backward_parts.emplace();
      parts.input = draw(0.1, 2);
      parts.weight = draw(0.1, 2);
      stage.seconds.backward = draw(0.1, 3);
      stage.seconds.prediction = draw(0, 0.3);
      stage.seconds.codec = draw(0, 0.3);
      stage.step.seconds = draw(0, 0.5);
      stage.communication.output_bytes = draw(0, 200);
      stage.parameters.gradient_bytes = draw(0, 200);
      stage.parameters.weight_bytes = draw(0, 200);
      stage.parameters.stash_bytes = draw(0, 100);
      stage.parameters.fp32_bytes = draw(0, 100);
      stage.activations.saved_bytes = draw(0, 100);
      stage.activations.layer_bytes = draw(0, 50);
      stage.activations.recompute_scratch_bytes = draw(0, 100);
      stage.activations.weight_gradient_stash_bytes = draw(0, 100);
      stage.communication.forward_collectives = {
          {.bytes = draw(0, 50), .count = 2}};
      stage.communication.backward_collectives = {
          {.bytes = draw(0, 50), .overlaps_weight_gradient = true}};
      stage.launches.forward_seconds = draw(0, 1);
      stage.activations.forward_scratch_bytes = draw(0, 50);
      stage.activations.backward_scratch_bytes = draw(0, 50);
      stage.parameters.num_layers = 1 + s % 3;
    }
    placement_.pipeline = schedule_.num_ranks;
    placement_.data = std::uniform_int_distribution<>(1, 2)(*random);
    placement_.tensor = std::uniform_int_distribution<>(1, 2)(*random);
    placement_.gpus.resize(placement_.num_gpus());
    std::iota(placement_.gpus.begin(), placement_.gpus.end(), 0);
    DrawSharing(random);
    communication_.set_gradient_reduction(
        std::uniform_int_distribution<>(0, 1)(*random) == 0
            ? REDUCTION_OVERLAPPED
            : REDUCTION_BLOCKING);
    if (nodes) {
      PlaceOnNodes(random);
    } else {
      network_.emplace(SharedEverything(placement_.num_gpus()));
    }
    FoldExperts();
    GroupShards();
  }

  // Gives experts sizes of their own in some cases. Draws no number, like
  // GroupShards.
  void FoldExperts() {
    costs_.tensor = placement_.tensor;
    const int num_gpus = placement_.tensor * placement_.data;
    const double any = costs_.stages[0].seconds.forward;  // 0.1 to 2
    if (costs_.stages[0].parameters.expert_gradient_bytes == 0 || any > 1.5)
      return;
    costs_.expert_tensor = any < 1 || num_gpus % 2 == 1 ? 1 : 2;
    costs_.expert_parallel = num_gpus / costs_.expert_tensor;
    if (any < 0.5 && num_gpus % 2 == 0) costs_.expert_parallel = 2;
    if (costs_.expert_tensor == placement_.tensor) costs_.expert_tensor = 0;
    for (StageCosts& stage : costs_.stages) {
      if (costs_.expert_tensor < 2) break;
      stage.communication.forward_collectives.push_back(
          {.kind = models::CollectiveKind::kAllGather,
           .group = models::LayerCollective::Group::kExpertTensor,
           .bytes = 30});
    }
  }

  // Divides four replicas into two groups that shard, in some cases.
  void GroupShards() {
    const int shards = costs_.shards * costs_.optimizer_shards;
    const int each =
        costs_.expert_tensor > 0 ? costs_.expert_tensor : placement_.tensor;
    if (shards != 4 || costs_.stages[0].seconds.forward < 0.4 ||
        2 * placement_.tensor % (costs_.expert_parallel * each) != 0) {
      return;
    }
    for (int s = 0; s < schedule_.num_stages; ++s) {
      if (schedule_.RanksOf(s).size() > 1) return;
    }
    costs_.shard_replicas = 2;
    (costs_.shards > 1 ? costs_.shards : costs_.optimizer_shards) = 2;
  }

  void PlaceOnNodes(std::mt19937* random) {
    const auto draw = [&](int low, int high) {
      return std::uniform_int_distribution<>(low, high)(*random);
    };
    placement_.data = draw(1, 4);
    for (int* shards :
         {&costs_.shards, &costs_.optimizer_shards, &costs_.expert_parallel}) {
      if (*shards > 1) *shards = placement_.data;
    }
    const int num_gpus = placement_.num_gpus();
    network_.emplace(SharedAdapters(num_gpus, draw(2, 4)));
    placement_ = *scenarios::PlaceInOrder(
        "test", draw(0, 1) == 0 ? "tp-dp-pp" : "tp-pp-dp", placement_.tensor,
        placement_.data, placement_.pipeline, num_gpus);
    if (draw(0, 3) == 0) {
      std::shuffle(placement_.gpus.begin(), placement_.gpus.end(), *random);
    }
    if (draw(0, 2) == 0) communication_.set_transfers(BLOCKING);
  }

  static bool Half(std::mt19937* random) {
    return std::uniform_int_distribution<>(0, 1)(*random) == 0;
  }

  void DrawShardCalls(std::mt19937* random) {
    ShardCalls& calls = costs_.shard_calls;
    for (PassGathers* pass : {&calls.forward, &calls.backward}) {
      pass->calls = Half(random) ? 4 : 1;
      pass->exposed_calls = Half(random) ? pass->calls : 0;
      if (pass->calls > 1 && Half(random)) pass->exposed_calls = 1;
      pass->exposed_bytes = pass->exposed_calls / pass->calls;
    }
    if (Half(random)) {
      calls.reductions = 4;
      calls.small_reductions = 8;
      calls.small_part = 0.1;
    }
    calls.blocking_reductions = Half(random);
    calls.list_seconds = Half(random) ? 0.01 : 0;
  }

  // Draws the data that is sharded across replicas: everything, optimizer
  // states only, or experts.
  void DrawSharing(std::mt19937* random) {
    costs_.bucket_bytes = 40;
    costs_.tied_gradient_bytes = 50;
    costs_.tied_stage = schedule_.num_stages - 1;
    costs_.widens_gradients = true;
    // Draws no number of its own: later draws remain the same.
    costs_.frees_gradients = costs_.stages[0].parameters.gradient_bytes < 100;
    if (!schedule_.flush || schedule_.forward_only) return;
    const int drawn = std::uniform_int_distribution<>(0, 3)(*random);
    if (drawn == 0) costs_.shards = placement_.data;
    DrawShardCalls(random);
    costs_.overlaps_step_gather = Half(random);
    if (drawn > 1) costs_.optimizer_shards = placement_.data;
    if (drawn < 3) return;
    costs_.expert_parallel = placement_.data;
    for (StageCosts& stage : costs_.stages) {
      stage.parameters.expert_gradient_bytes =
          stage.parameters.gradient_bytes / 3;
      stage.communication.forward_collectives.push_back(
          {.kind = models::CollectiveKind::kAllToAll,
           .group = models::LayerCollective::Group::kExpert,
           .bytes = 20});
    }
  }

  PipelineInputs inputs() const {
    return {schedule_, semantics_, costs_,
            *network_, placement_, communication_};
  }
  // Returns the symmetry reduction of the case, or nullopt if there is none.
  std::optional<Symmetry> FindSymmetry() const {
    return Symmetry::Find(
        *network_, placement_,
        WholeTraffic(TrafficOf(schedule_), placement_, schedule_, costs_));
  }
  const schedules::Schedule& schedule() const { return schedule_; }
  const scenarios::Network& network() const { return *network_; }

 private:
  schedules::Schedule schedule_;
  schedules::Semantics semantics_;
  Costs costs_;
  scenarios::Placement placement_;
  Communication communication_;
  std::optional<scenarios::Network> network_;
};

}  // namespace weir::sim

#endif  // WEIR_TESTS_SIM_RANDOM_CASE_H_
