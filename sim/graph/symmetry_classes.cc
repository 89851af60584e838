// SPDX-License-Identifier: Apache-2.0
// Splits classes of replicas and tensor ranks that do not do the same.
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

#include "sim/graph/replica_groups.h"
#include "sim/graph/symmetry_search.h"

namespace weir::sim {

bool SymmetrySearch::PricedAlike(const Group& a, const Group& b) {
  const calibrate::CollectiveGroup &one = a.links, &other = b.links;
  return a.num_rings == b.num_rings &&
         a.intra_seconds_per_byte == b.intra_seconds_per_byte &&
         a.inter_seconds_per_byte == b.inter_seconds_per_byte &&
         a.shares_links == b.shares_links && a.hop_seconds == b.hop_seconds &&
         one.num_ranks == other.num_ranks &&
         one.ranks_per_node == other.ranks_per_node &&
         one.intra_bytes_per_second == other.intra_bytes_per_second &&
         one.inter_bytes_per_second == other.inter_bytes_per_second &&
         one.pci == other.pci && one.nvls == other.nvls;
}

void SymmetrySearch::SignInstances() {
  for (Instance& instance : instances_) {
    uint64_t& sum = instance.signature;
    sum = Mix(instance.role);
    const auto add = [&sum](uint64_t x) { sum = Mix(sum ^ x); };
    for (uint64_t color : instance.colors) add(color);
    add(static_cast<uint64_t>(instance.wire) * 2 + instance.same_leaf);
    add(std::bit_cast<uint64_t>(instance.latency_seconds));
    if (instance.group < 0) continue;
    const Group& group = groups_[instance.group];
    const calibrate::CollectiveGroup& links = group.links;
    add(group.num_rings * 2 + group.shares_links);
    add(links.num_ranks * 4 + links.pci * 2 + links.nvls);
    add(links.ranks_per_node);
    for (double figure :
         {group.intra_seconds_per_byte, group.inter_seconds_per_byte,
          group.hop_seconds, links.intra_bytes_per_second,
          links.inter_bytes_per_second}) {
      add(std::bit_cast<uint64_t>(figure));
    }
  }
}

bool SymmetrySearch::InstancesAreAlike() const {
  return std::all_of(
      instances_.begin(), instances_.end(), [&](const Instance& one) {
        const Instance& first = instances_[roles_[one.role].first];
        return one.colors == first.colors && one.wire == first.wire &&
               one.same_leaf == first.same_leaf &&
               one.latency_seconds == first.latency_seconds &&
               (one.group < 0 ||
                PricedAlike(groups_[one.group], groups_[first.group]));
      });
}

bool SymmetrySearch::SplitClasses() {
  std::vector<uint64_t> of_replica(place_.data), of_tensor(place_.tensor);
  using Kind = InstanceRole::Kind;
  for (const Instance& instance : instances_) {
    const uint64_t mixed = Mix(instance.signature);
    const InstanceRole& name = instance.name;
    if (name.kind != Kind::kCopies) of_replica[name.replica] += mixed;
    if (name.kind != Kind::kTensor) of_tensor[name.tensor_rank] += mixed;
  }
  const ReplicaGroups groups(traffic_.expert_parallel, traffic_.expert_tensor,
                             traffic_.shard_replicas, place_);
  if (groups.folded()) std::iota(of_tensor.begin(), of_tensor.end(), 0);
  if (groups.joins_replicas() ||
      traffic_.context_neighbors * traffic_.context_ring > 1) {
    // Replicas that share experts, shards or sequences must stay together: all
    // in one class, or each in its own. So must tensor ranks of folded experts.
    std::iota(of_replica.begin(), of_replica.end(), 0);
  }
  const bool by_replica = Split(of_replica, &symmetry_.replica_class_);
  return Split(of_tensor, &symmetry_.tensor_class_) || by_replica;
}

bool SymmetrySearch::Split(const std::vector<uint64_t>& signatures,
                           std::vector<int32_t>* classes) {
  std::map<std::pair<int32_t, uint64_t>, int32_t> index;
  const std::vector<int32_t> before = *classes;
  for (size_t i = 0; i < signatures.size(); ++i) {
    const auto next = static_cast<int32_t>(index.size());
    (*classes)[i] =
        index.try_emplace({before[i], signatures[i]}, next).first->second;
  }
  return *classes != before;
}

}  // namespace weir::sim
