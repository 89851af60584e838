// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/symmetry.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "sim/graph/symmetry_search.h"

namespace weir::sim {

SymmetrySearch::SymmetrySearch(const scenarios::Network& network,
                               const scenarios::Placement& full_placement,
                               const Traffic& traffic)
    : network_(network),
      place_(full_placement),
      traffic_(traffic),
      lowering_(network, nullptr, nullptr, &hops_) {
  symmetry_.full_placement_ = full_placement;
  for (const std::vector<int>& ranks : traffic.copies) {
    symmetry_.copies_index_.try_emplace(
        ranks, static_cast<int>(symmetry_.copies_index_.size()));
  }
  symmetry_.replica_class_.assign(full_placement.data, 0);
  symmetry_.tensor_class_.assign(full_placement.tensor, 0);
}

std::optional<Symmetry> SymmetrySearch::Run() {
  AddUses();
  NumberLinks();
  while (true) {
    NameRoles();
    Refine();
    if (!IsEquitable() || !RolesAreApart()) return std::nullopt;
    SignInstances();
    if (InstancesAreAlike()) break;
    if (!SplitClasses()) return std::nullopt;
  }
  SetRepresentatives();
  if (symmetry_.representatives_.num_gpus() == place_.num_gpus()) {
    return std::nullopt;
  }
  NumberColors();
  if (traffic_.slows_passes && !TouchesAreAlike()) return std::nullopt;
  if (!AddLinks()) return std::nullopt;
  NameColors();
  return std::move(symmetry_);
}

void SymmetrySearch::SetRepresentatives() {
  symmetry_.replicas_ = FirstOfEach(symmetry_.replica_class_);
  symmetry_.tensor_ranks_ = FirstOfEach(symmetry_.tensor_class_);
  scenarios::Placement& rest = symmetry_.representatives_;
  rest.tensor = static_cast<int>(symmetry_.tensor_ranks_.size());
  rest.data = static_cast<int>(symmetry_.replicas_.size());
  rest.pipeline = place_.pipeline;
  for (int r : symmetry_.replicas_) {
    for (int rank = 0; rank < rest.pipeline; ++rank) {
      for (int t : symmetry_.tensor_ranks_) {
        rest.gpus.push_back(place_.gpu(r, rank, t));
      }
    }
  }
}

std::vector<int32_t> SymmetrySearch::FirstOfEach(
    const std::vector<int32_t>& classes) {
  std::vector<int32_t> first;
  for (int32_t i = 0; i < std::ssize(classes); ++i) {
    if (classes[i] == std::ssize(first)) first.push_back(i);
  }
  return first;
}

void SymmetrySearch::NumberColors() {
  for (const Role& role : roles_) {
    for (const HopUse& use : UsesOf(instances_[role.first])) {
      const auto [at, added] = color_number_.try_emplace(
          use.color, static_cast<int32_t>(color_number_.size()));
      if (added) {
        symmetry_.colors_.emplace_back().route.latency_seconds =
            use.latency_seconds;
      }
    }
  }
  for (HopUse& use : uses_) use.number = color_number_.at(use.color);
}

bool SymmetrySearch::TouchesAreAlike() {
  std::vector<std::vector<int32_t>> touching(network_.num_gpus());
  for (const HopUse& use : uses_) {
    for (int32_t gpu : {use.from, use.to}) {
      if (gpu >= 0) touching[gpu].push_back(use.number);
    }
    if (use.to < 0) {
      symmetry_.colors_[use.number].touch.mover = Mover::kCopies;
    }
  }
  for (std::vector<int32_t>& colors : touching) {
    std::sort(colors.begin(), colors.end());
    colors.erase(std::unique(colors.begin(), colors.end()), colors.end());
  }
  for (int i = 0; i < place_.num_gpus(); ++i) {
    const int gpu =
        symmetry_.representatives_.gpus[symmetry_.RepresentativeOf(i)];
    if (touching[place_.gpus[i]] != touching[gpu]) return false;
  }
  for (int gpu : symmetry_.representatives_.gpus) {
    for (int32_t color : touching[gpu]) {
      symmetry_.colors_[color].touch.gpus.push_back(gpu);
    }
  }
  return true;
}

bool SymmetrySearch::AddLinks() {
  using Counts = std::vector<std::pair<int32_t, int32_t>>;  // color, flows
  std::map<Counts, double> rates;
  absl::flat_hash_set<uint64_t> seen;
  for (size_t link = 0; link < rates_.size(); ++link) {
    if (!seen.insert(link_colors_[link]).second) continue;
    std::map<int32_t, int32_t> counts;
    for (uint64_t color : crossing_[link]) ++counts[color_number_.at(color)];
    int32_t divisor = 0;
    for (const auto& [color, count] : counts) {
      divisor = std::gcd(divisor, count);
    }
    Counts key;
    for (const auto& [color, count] : counts) {
      key.push_back({color, count / divisor});
    }
    const double rate = rates_[link] / divisor;
    const auto [at, added] = rates.try_emplace(std::move(key), rate);
    if (!added) at->second = std::min(at->second, rate);
  }
  for (const auto& [counts, rate] : rates) {
    const auto link = static_cast<int32_t>(symmetry_.links_.size());
    symmetry_.links_.push_back({"reduced", rate});
    for (const auto& [color, count] : counts) {
      if (counts.size() > 1) symmetry_.colors_[color].has_own_links = false;
      std::vector<int32_t>& route = symmetry_.colors_[color].route.links;
      if (route.size() + count > kMaxNames) return false;
      route.insert(route.end(), count, link);
    }
  }
  return true;
}

void SymmetrySearch::NameColors() {
  for (const Role& role : roles_) {
    const Instance& first = instances_[role.first];
    const auto uses = UsesOf(first);
    if (first.group < 0) {
      symmetry_.sends_[role.name] = uses.empty() ? -1 : uses[0].number;
      continue;
    }
    Group& group = groups_[first.group];
    group.intra_hops.clear();
    group.inter_hops.clear();
    group.hop_set = -1;
    for (const HopUse& use : uses) {
      std::vector<int32_t>& hops =
          use.kind == kIntra ? group.intra_hops : group.inter_hops;
      if (std::find(hops.begin(), hops.end(), use.number) == hops.end()) {
        hops.push_back(use.number);
      }
    }
    symmetry_.groups_[role.name] = std::move(group);
  }
}

std::optional<Symmetry> Symmetry::Find(
    const scenarios::Network& network,
    const scenarios::Placement& full_placement, const Traffic& traffic) {
  return SymmetrySearch(network, full_placement, traffic).Run();
}

int Symmetry::RepresentativeOf(int index) const {
  const int n = full_placement_.tensor;
  const int row = index / n;  // tensor group
  return representatives_.index(replica_class_[row / full_placement_.pipeline],
                                row % full_placement_.pipeline,
                                tensor_class_[index % n]);
}

int Symmetry::IndexOf(int representative) const {
  const int n = representatives_.tensor;
  const int row = representative / n;
  return full_placement_.index(replicas_[row / full_placement_.pipeline],
                               row % full_placement_.pipeline,
                               tensor_ranks_[representative % n]);
}

int Symmetry::IndexOfCopies(const std::vector<int>& ranks) const {
  return copies_index_.at(ranks);
}

int32_t Symmetry::ColorOf(const InstanceRole& role) const {
  const auto at = sends_.find(role);
  return at == sends_.end() ? -1 : at->second;
}

}  // namespace weir::sim
