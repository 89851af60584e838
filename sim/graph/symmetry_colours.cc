// SPDX-License-Identifier: Apache-2.0
// Refines the colors of hops and links to an equitable partition.
#include <algorithm>
#include <bit>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "sim/graph/symmetry_search.h"

namespace weir {

void FoldSearch::NameRoles() {
  roles_.clear();
  absl::flat_hash_map<FoldRole, int32_t> index;
  for (size_t i = 0; i < instances_.size(); ++i) {
    Instance& instance = instances_[i];
    FoldRole name = instance.name;
    name.replica = fold_.replica_class_[name.replica];
    name.tensor_rank = fold_.tensor_class_[name.tensor_rank];
    const auto [at, added] =
        index.try_emplace(name, static_cast<int32_t>(roles_.size()));
    if (added) roles_.push_back({name, static_cast<int32_t>(i)});
    instance.role = at->second;
    for (int32_t u = instance.first_use; u < instance.end_use; ++u) {
      Use& use = uses_[u];
      use.colour = Mix(Mix(instance.role * 4 + use.kind) ^
                       std::bit_cast<uint64_t>(use.latency_seconds));
    }
  }
}

void FoldSearch::Refine() {
  size_t num_colours = 0;
  absl::flat_hash_set<uint64_t> seen;
  while (true) {
    for (size_t link = 0; link < rates_.size(); ++link) {
      link_colours_[link] = std::bit_cast<uint64_t>(rates_[link]);
    }
    for (const Use& use : uses_) {
      const uint64_t mixed = Mix(use.colour);
      for (int32_t link : LinksOf(use)) link_colours_[link] += mixed;
    }
    for (uint64_t& colour : link_colours_) colour = Mix(colour);
    seen.clear();
    for (Use& use : uses_) {
      uint64_t sum = use.colour;
      for (int32_t link : LinksOf(use)) sum += Mix(link_colours_[link] + 1);
      use.colour = Mix(sum);
      seen.insert(use.colour);
    }
    if (seen.size() == num_colours) return;
    num_colours = seen.size();
  }
}

bool FoldSearch::IsEquitable() {
  std::vector<std::vector<uint64_t>> crossing(rates_.size());
  for (const Use& use : uses_) {
    for (int32_t link : LinksOf(use)) crossing[link].push_back(use.colour);
  }
  absl::flat_hash_map<uint64_t, size_t> first_link;
  for (size_t link = 0; link < rates_.size(); ++link) {
    std::sort(crossing[link].begin(), crossing[link].end());
    const size_t first =
        first_link.try_emplace(link_colours_[link], link).first->second;
    if (crossing[first] != crossing[link] || rates_[first] != rates_[link]) {
      return false;
    }
  }
  absl::flat_hash_map<uint64_t, size_t> first_use;
  for (size_t i = 0; i < uses_.size(); ++i) {
    const size_t first =
        first_use.try_emplace(uses_[i].colour, i).first->second;
    if (first == i) continue;
    if (SortedLinkColours(uses_[first]) != SortedLinkColours(uses_[i]) ||
        uses_[first].latency_seconds != uses_[i].latency_seconds) {
      return false;
    }
  }
  crossing_ = std::move(crossing);
  return true;
}

std::vector<uint64_t> FoldSearch::SortedLinkColours(const Use& use) const {
  std::vector<uint64_t> colours;
  for (int32_t link : LinksOf(use)) colours.push_back(link_colours_[link]);
  std::sort(colours.begin(), colours.end());
  return colours;
}

bool FoldSearch::RolesAreApart() {
  absl::flat_hash_map<uint64_t, int32_t> owner;
  for (Instance& instance : instances_) {
    instance.colours.clear();
    for (const Use& use : UsesOf(instance)) {
      instance.colours.push_back(use.colour);
      if (owner.try_emplace(use.colour, instance.role).first->second !=
          instance.role) {
        return false;
      }
    }
    std::sort(instance.colours.begin(), instance.colours.end());
    instance.colours.erase(
        std::unique(instance.colours.begin(), instance.colours.end()),
        instance.colours.end());
  }
  return true;
}

}  // namespace weir
