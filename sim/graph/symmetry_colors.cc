// SPDX-License-Identifier: Apache-2.0
// Refines the colors of hops and links to an equitable partition.
#include <algorithm>
#include <bit>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "sim/graph/symmetry_search.h"

namespace weir::sim {

void SymmetrySearch::NameRoles() {
  roles_.clear();
  absl::flat_hash_map<InstanceRole, int32_t> index;
  for (size_t i = 0; i < instances_.size(); ++i) {
    Instance& instance = instances_[i];
    InstanceRole name = instance.name;
    name.replica = symmetry_.replica_class_[name.replica];
    name.tensor_rank = symmetry_.tensor_class_[name.tensor_rank];
    const auto [at, added] =
        index.try_emplace(name, static_cast<int32_t>(roles_.size()));
    if (added) roles_.push_back({name, static_cast<int32_t>(i)});
    instance.role = at->second;
    for (int32_t u = instance.first_use; u < instance.end_use; ++u) {
      HopUse& use = uses_[u];
      use.color = Mix(Mix(instance.role * 4 + use.kind) ^
                      std::bit_cast<uint64_t>(use.latency_seconds));
    }
  }
}

void SymmetrySearch::Refine() {
  size_t num_colors = 0;
  absl::flat_hash_set<uint64_t> seen;
  while (true) {
    for (size_t link = 0; link < rates_.size(); ++link) {
      link_colors_[link] = std::bit_cast<uint64_t>(rates_[link]);
    }
    for (const HopUse& use : uses_) {
      const uint64_t mixed = Mix(use.color);
      for (int32_t link : LinksOf(use)) link_colors_[link] += mixed;
    }
    for (uint64_t& color : link_colors_) color = Mix(color);
    seen.clear();
    for (HopUse& use : uses_) {
      uint64_t sum = use.color;
      for (int32_t link : LinksOf(use)) sum += Mix(link_colors_[link] + 1);
      use.color = Mix(sum);
      seen.insert(use.color);
    }
    if (seen.size() == num_colors) return;
    num_colors = seen.size();
  }
}

bool SymmetrySearch::IsEquitable() {
  std::vector<std::vector<uint64_t>> crossing(rates_.size());
  for (const HopUse& use : uses_) {
    for (int32_t link : LinksOf(use)) crossing[link].push_back(use.color);
  }
  absl::flat_hash_map<uint64_t, size_t> first_link;
  for (size_t link = 0; link < rates_.size(); ++link) {
    std::sort(crossing[link].begin(), crossing[link].end());
    const size_t first =
        first_link.try_emplace(link_colors_[link], link).first->second;
    if (crossing[first] != crossing[link] || rates_[first] != rates_[link]) {
      return false;
    }
  }
  absl::flat_hash_map<uint64_t, size_t> first_use;
  for (size_t i = 0; i < uses_.size(); ++i) {
    const size_t first = first_use.try_emplace(uses_[i].color, i).first->second;
    if (first == i) continue;
    if (SortedLinkColors(uses_[first]) != SortedLinkColors(uses_[i]) ||
        uses_[first].latency_seconds != uses_[i].latency_seconds) {
      return false;
    }
  }
  crossing_ = std::move(crossing);
  return true;
}

std::vector<uint64_t> SymmetrySearch::SortedLinkColors(
    const HopUse& use) const {
  std::vector<uint64_t> colors;
  for (int32_t link : LinksOf(use)) colors.push_back(link_colors_[link]);
  std::sort(colors.begin(), colors.end());
  return colors;
}

bool SymmetrySearch::RolesAreApart() {
  absl::flat_hash_map<uint64_t, int32_t> owner;
  for (Instance& instance : instances_) {
    instance.colors.clear();
    for (const HopUse& use : UsesOf(instance)) {
      instance.colors.push_back(use.color);
      if (owner.try_emplace(use.color, instance.role).first->second !=
          instance.role) {
        return false;
      }
    }
    std::sort(instance.colors.begin(), instance.colors.end());
    instance.colors.erase(
        std::unique(instance.colors.begin(), instance.colors.end()),
        instance.colors.end());
  }
  return true;
}

}  // namespace weir::sim
