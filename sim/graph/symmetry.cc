// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/symmetry.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "sim/graph/symmetry_search.h"

namespace weir {

FoldSearch::FoldSearch(const Network& network, const Placement& everybody,
                       const Traffic& traffic)
    : network_(network),
      place_(everybody),
      traffic_(traffic),
      ways_(network, nullptr, nullptr, &hops_) {
  fold_.everybody_ = everybody;
  for (const std::vector<int>& ranks : traffic.copies) {
    fold_.copies_index_.try_emplace(
        ranks, static_cast<int>(fold_.copies_index_.size()));
  }
  fold_.replica_class_.assign(everybody.data, 0);
  fold_.tensor_class_.assign(everybody.tensor, 0);
}

std::optional<Fold> FoldSearch::Run() {
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
  if (fold_.representatives_.num_gpus() == place_.num_gpus()) {
    return std::nullopt;
  }
  NumberColours();
  if (traffic_.slows_passes && !TouchesAreAlike()) return std::nullopt;
  if (!AddLinks()) return std::nullopt;
  NameColours();
  return std::move(fold_);
}

void FoldSearch::SetRepresentatives() {
  fold_.replicas_ = FirstOfEach(fold_.replica_class_);
  fold_.tensor_ranks_ = FirstOfEach(fold_.tensor_class_);
  Placement& rest = fold_.representatives_;
  rest.tensor = static_cast<int>(fold_.tensor_ranks_.size());
  rest.data = static_cast<int>(fold_.replicas_.size());
  rest.pipeline = place_.pipeline;
  for (int r : fold_.replicas_) {
    for (int rank = 0; rank < rest.pipeline; ++rank) {
      for (int t : fold_.tensor_ranks_) {
        rest.gpus.push_back(place_.gpu(r, rank, t));
      }
    }
  }
}

std::vector<int32_t> FoldSearch::FirstOfEach(
    const std::vector<int32_t>& classes) {
  std::vector<int32_t> first;
  for (int32_t i = 0; i < std::ssize(classes); ++i) {
    if (classes[i] == std::ssize(first)) first.push_back(i);
  }
  return first;
}

void FoldSearch::NumberColours() {
  for (const Role& role : roles_) {
    for (const Use& use : UsesOf(instances_[role.first])) {
      const auto [at, added] = colour_number_.try_emplace(
          use.colour, static_cast<int32_t>(colour_number_.size()));
      if (added) {
        fold_.colours_.emplace_back().route.latency_seconds =
            use.latency_seconds;
      }
    }
  }
  for (Use& use : uses_) use.number = colour_number_.at(use.colour);
}

bool FoldSearch::TouchesAreAlike() {
  std::vector<std::vector<int32_t>> touching(network_.num_gpus());
  for (const Use& use : uses_) {
    for (int32_t gpu : {use.from, use.to}) {
      if (gpu >= 0) touching[gpu].push_back(use.number);
    }
    if (use.to < 0) {
      fold_.colours_[use.number].touch.mover = Mover::kCopies;
    }
  }
  for (std::vector<int32_t>& colours : touching) {
    std::sort(colours.begin(), colours.end());
    colours.erase(std::unique(colours.begin(), colours.end()), colours.end());
  }
  for (int i = 0; i < place_.num_gpus(); ++i) {
    const int gpu = fold_.representatives_.gpus[fold_.RepresentativeOf(i)];
    if (touching[place_.gpus[i]] != touching[gpu]) return false;
  }
  for (int gpu : fold_.representatives_.gpus) {
    for (int32_t colour : touching[gpu]) {
      fold_.colours_[colour].touch.gpus.push_back(gpu);
    }
  }
  return true;
}

bool FoldSearch::AddLinks() {
  using Counts = std::vector<std::pair<int32_t, int32_t>>;  // color, flows
  std::map<Counts, double> rates;
  absl::flat_hash_set<uint64_t> seen;
  for (size_t link = 0; link < rates_.size(); ++link) {
    if (!seen.insert(link_colours_[link]).second) continue;
    std::map<int32_t, int32_t> counts;
    for (uint64_t colour : crossing_[link]) ++counts[colour_number_.at(colour)];
    int32_t divisor = 0;
    for (const auto& [colour, count] : counts) {
      divisor = std::gcd(divisor, count);
    }
    Counts key;
    for (const auto& [colour, count] : counts) {
      key.push_back({colour, count / divisor});
    }
    const double rate = rates_[link] / divisor;
    const auto [at, added] = rates.try_emplace(std::move(key), rate);
    if (!added) at->second = std::min(at->second, rate);
  }
  for (const auto& [counts, rate] : rates) {
    const auto link = static_cast<int32_t>(fold_.links_.size());
    fold_.links_.push_back({"folded", rate});
    for (const auto& [colour, count] : counts) {
      if (counts.size() > 1) fold_.colours_[colour].has_own_links = false;
      std::vector<int32_t>& route = fold_.colours_[colour].route.links;
      if (route.size() + count > kMaxNames) return false;
      route.insert(route.end(), count, link);
    }
  }
  return true;
}

void FoldSearch::NameColours() {
  for (const Role& role : roles_) {
    const Instance& first = instances_[role.first];
    const auto uses = UsesOf(first);
    if (first.group < 0) {
      fold_.sends_[role.name] = uses.empty() ? -1 : uses[0].number;
      continue;
    }
    Group& group = groups_[first.group];
    group.intra_hops.clear();
    group.inter_hops.clear();
    group.hop_set = -1;
    for (const Use& use : uses) {
      std::vector<int32_t>& hops =
          use.kind == kIntra ? group.intra_hops : group.inter_hops;
      if (std::find(hops.begin(), hops.end(), use.number) == hops.end()) {
        hops.push_back(use.number);
      }
    }
    fold_.groups_[role.name] = std::move(group);
  }
}

std::optional<Fold> Fold::Find(const Network& network,
                               const Placement& everybody,
                               const Traffic& traffic) {
  return FoldSearch(network, everybody, traffic).Run();
}

int Fold::RepresentativeOf(int index) const {
  const int n = everybody_.tensor;
  const int row = index / n;  // tensor group
  return representatives_.index(replica_class_[row / everybody_.pipeline],
                                row % everybody_.pipeline,
                                tensor_class_[index % n]);
}

int Fold::IndexOf(int representative) const {
  const int n = representatives_.tensor;
  const int row = representative / n;
  return everybody_.index(replicas_[row / everybody_.pipeline],
                          row % everybody_.pipeline,
                          tensor_ranks_[representative % n]);
}

int Fold::IndexOfCopies(const std::vector<int>& ranks) const {
  return copies_index_.at(ranks);
}

int32_t Fold::ColourOf(const FoldRole& role) const {
  const auto at = sends_.find(role);
  return at == sends_.end() ? -1 : at->second;
}

}  // namespace weir
