// SPDX-License-Identifier: Apache-2.0
// Enumeration of every hop that a flow can take, with its role.
#include <utility>

#include "sim/costs/stage_costs.h"
#include "sim/graph/replica_groups.h"
#include "sim/graph/symmetry_search.h"

namespace weir::sim {

void SymmetrySearch::AddUses() {
  const int d = place_.data, n = place_.tensor;
  const ReplicaGroups groups(traffic_.expert_parallel, traffic_.expert_tensor,
                             traffic_.shard_replicas, place_);
  const auto add = [&](const InstanceRole& role, const GpuRun& run,
                       const std::vector<int>& ranks) {
    InstanceRole name = role;
    name.replica = groups.ReplicaOf(run.first);
    name.tensor_rank = groups.TensorRankOf(run.first);
    AddGroup(name, groups.GpusOf(run, ranks));
  };
  using Kind = InstanceRole::Kind;
  for (int r = 0; r < d; ++r) {
    for (int t = 0; t < n; ++t) AddUsesOf(r, t);
  }
  for (int rank = 0; rank < place_.pipeline; ++rank) {
    for (int r = 0; n > 1 && r < d; ++r) {
      AddGroup({Kind::kTensor, rank, 0, r, 0},
               Members({rank}, r, r + 1, 1, 0, n));
    }
    if (traffic_.expert_parallel > 1) {
      for (const GpuRun& run : groups.Exchanges(0, d * n)) {
        add({Kind::kExperts, rank}, run, {rank});
      }
    }
    if (groups.folded() && traffic_.expert_tensor > 1) {
      for (const GpuRun& run : groups.ExpertTensors(0, d * n)) {
        add({Kind::kExpertTensor, rank}, run, {rank});
      }
    }
  }
  AddContextUses();
  for (int i = 0; i < static_cast<int>(traffic_.copies.size()); ++i) {
    const std::vector<int>& ranks = traffic_.copies[i];
    for (int t = 0; t < n; ++t) {
      const Kind kind =
          traffic_.shard_replicas > 1 ? Kind::kShards : Kind::kCopies;
      for (const GpuRun& run : groups.Copies(t)) add({kind, i}, run, ranks);
      for (const GpuRun& run : groups.ExpertCopies(t)) {
        add({Kind::kExpertCopies, i}, run, ranks);
      }
      for (const GpuRun& run : groups.ShardCopies(t)) {
        add({Kind::kShardCopies, i}, run, ranks);
      }
    }
  }
}

void SymmetrySearch::AddContextUses() {
  const ContextGroups context = {traffic_.context_neighbors,
                                 traffic_.context_ring};
  const int n = context.neighbors;
  using Kind = InstanceRole::Kind;
  for (int rank = 0; rank < place_.pipeline; ++rank) {
    for (int r = 0; context.size() > 1 && r < place_.data; ++r) {
      for (int t = 0; t < place_.tensor; ++t) {
        if (n > 1 && r % n == 0) {
          AddGroup({Kind::kContext, rank, 0, r, t},
                   Members({rank}, r, r + n, 1, t, t + 1));
        }
        if (context.ring > 1) {
          AddSend({Kind::kContextRing, rank, 0, r, t}, place_.gpu(r, rank, t),
                  place_.gpu(context.NextOf(r), rank, t));
        }
      }
    }
  }
}

void SymmetrySearch::AddUsesOf(int r, int t) {
  using Kind = InstanceRole::Kind;
  for (const auto& [a, b] : traffic_.sends) {
    AddSend({Kind::kSend, a, b, r, t}, place_.gpu(r, a, t),
            place_.gpu(r, b, t));
  }
  for (int rank : traffic_.offloads) {
    const int gpu = place_.gpu(r, rank, t);
    instances_.push_back(InstanceOf({Kind::kToHost, rank, 0, r, t}));
    AddUse(gpu, -1, network_.RouteToHost(gpu), kHost);
    instances_.push_back(InstanceOf({Kind::kFromHost, rank, 0, r, t}));
    AddUse(gpu, -1, network_.RouteFromHost(gpu), kHost);
  }
  if (traffic_.tied.empty()) return;
  const int a = traffic_.tied[0], b = traffic_.tied[1];
  AddGroup({Kind::kTied, a, b, r, t},
           {place_.gpu(r, a, t), place_.gpu(r, b, t)});
}

std::vector<int> SymmetrySearch::Members(const std::vector<int>& ranks,
                                         int first_replica, int end_replica,
                                         int stride, int first_tensor_rank,
                                         int end_tensor_rank) const {
  std::vector<int> gpus;
  for (int rank : ranks) {
    for (int r = first_replica; r < end_replica; r += stride) {
      for (int t = first_tensor_rank; t < end_tensor_rank; ++t) {
        gpus.push_back(place_.gpu(r, rank, t));
      }
    }
  }
  return gpus;
}

SymmetrySearch::Instance SymmetrySearch::InstanceOf(
    const InstanceRole& name) const {
  Instance instance;
  instance.name = name;
  instance.first_use = instance.end_use = static_cast<int32_t>(uses_.size());
  return instance;
}

void SymmetrySearch::AddUse(int from, int to, const scenarios::Route& route,
                            uint8_t kind) {
  if (route.links.empty()) return;
  HopUse use;
  use.from = from;
  use.to = to;
  use.kind = kind;
  // A model of collectives determines the latencies of groups.
  const bool of_group = kind == kIntra || kind == kInter;
  if (!of_group || !traffic_.models_collectives) {
    use.latency_seconds = route.latency_seconds;
  }
  use.first_link = static_cast<int32_t>(use_links_.size());
  use_links_.insert(use_links_.end(), route.links.begin(), route.links.end());
  use.end_link = static_cast<int32_t>(use_links_.size());
  uses_.push_back(use);
  instances_.back().end_use = static_cast<int32_t>(uses_.size());
}

void SymmetrySearch::AddSend(const InstanceRole& name, int from, int to) {
  Instance instance = InstanceOf(name);
  const scenarios::Route route = network_.RouteBetween(from, to);
  instance.wire = network_.WireBetween(from, to);
  instance.same_leaf = network_.SameLeaf(from, to);
  instance.latency_seconds = route.latency_seconds;
  instances_.push_back(std::move(instance));
  AddUse(from, to, route, kTransfer);
}

void SymmetrySearch::AddGroup(const InstanceRole& name,
                              const std::vector<int>& gpus) {
  Instance instance = InstanceOf(name);
  instance.group = static_cast<int32_t>(groups_.size());
  instances_.push_back(std::move(instance));
  groups_.push_back(lowering_.GroupOf(gpus));
  const auto add = [&](const std::vector<int32_t>& hops, uint8_t kind) {
    for (int32_t hop : hops) {
      const GpuPair& pair = hops_.pairs[hop];
      AddUse(pair.from % network_.num_gpus(), pair.to % network_.num_gpus(),
             pair.route, kind);
    }
  };
  add(groups_.back().intra_hops, kIntra);
  add(groups_.back().inter_hops, kInter);
}

void SymmetrySearch::NumberLinks() {
  std::vector<int32_t> number(network_.links().size(), -1);
  for (int32_t& link : use_links_) {
    if (number[link] < 0) {
      number[link] = static_cast<int32_t>(rates_.size());
      rates_.push_back(network_.links()[link].bytes_per_second);
    }
    link = number[link];
  }
  link_colors_.resize(rates_.size());
}

}  // namespace weir::sim
