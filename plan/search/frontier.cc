// SPDX-License-Identifier: Apache-2.0
#include "plan/search/frontier.h"

#include <algorithm>
#include <limits>

#include "base/infinity.h"
#include "schedules/options.h"

namespace weir::plan {
namespace {

// Entries of one family per round while other families have some.
constexpr size_t kShare = 2;

template <typename Key>
void KeepLeast(double ratio, const Key& key, std::map<Key, double>* ratios) {
  const auto [at, added] = ratios->try_emplace(key, ratio);
  if (!added) at->second = std::min(at->second, ratio);
}

}  // namespace

// All seeds are one family.
Frontier::Family Frontier::FamilyOf(const OpenEntry& entry) const {
  if (entry.seed >= 0) return {};
  const Shape& shape = space_.shapes[space_.ShapeOf(entry.shape)];
  return {
      {shape.tensor, shape.pipeline, shape.data, shape.context, shape.expert,
       shape.expert_tensor, shape.data_replicate, shape.order, shape.sharding,
       shape.sequence_parallel, shape.reduction, space_.VariantOf(entry.shape)},
      shape.chunks,
      std::string(schedules::WithoutOptions(
          space_.schedules_of(shape)[entry.schedule].name))};
}

void Frontier::Insert(const OpenEntry& entry) {
  if (entry.state != OpenEntry::State::kBounded) {
    to_bound_.insert(entry);
  } else {
    to_rank_[FamilyOf(entry)].insert(entry);
  }
}

void Frontier::RecordKey(const OpenEntry& entry, const Score& key) {
  if (entry.seed >= 0 || !(entry.key.first > 0)) return;
  const Family family = FamilyOf(entry);
  const double ratio = key.first / entry.key.first;
  KeepLeast(ratio, family, &of_family_);
  KeepLeast(ratio, std::get<0>(family), &of_layout_);
}

double Frontier::EstimateOf(const Family& family,
                            const OpenEntry& first) const {
  if (first.seed >= 0) return 0;  // seeds first
  const auto own = of_family_.find(family);
  if (own != of_family_.end()) return first.key.first * own->second;
  const auto others = of_layout_.find(std::get<0>(family));
  return others == of_layout_.end() ? first.key.first
                                    : first.key.first * others->second;
}

std::vector<OpenEntry> Frontier::NextRound(
    size_t num_bounds, size_t num_ranks, bool ranks_first,
    const std::function<bool(const OpenEntry&)>& is_beaten) {
  // Beaten entries are set aside; if no later entry can lead, all the rest is
  // beaten.
  const auto first_of = [&](std::set<OpenEntry>* entries) -> const OpenEntry* {
    while (!entries->empty()) {
      if (!is_beaten(*entries->begin())) return &*entries->begin();
      if (!each_may_lead_) return nullptr;
      beaten_.push_back(*entries->begin());
      entries->erase(entries->begin());
    }
    return nullptr;
  };
  std::vector<std::pair<double, std::set<OpenEntry>*>> families;
  for (auto& [family, entries] : to_rank_) {
    const OpenEntry* first = first_of(&entries);
    if (first != nullptr) {
      families.push_back({EstimateOf(family, *first), &entries});
    }
  }
  std::stable_sort(
      families.begin(), families.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });

  std::vector<OpenEntry> taken;
  const double least = families.empty() ? kInfinity : families[0].first;
  size_t num_taken[2] = {0, 0};  // shapes, candidates
  const bool bounds = families.empty() || !ranks_first;
  while (bounds && std::max(num_taken[0], num_taken[1]) < num_bounds) {
    const OpenEntry* first = first_of(&to_bound_);
    if (first == nullptr || first->key.first > least) break;
    ++num_taken[static_cast<int>(first->state)];
    taken.push_back(*first);
    to_bound_.erase(to_bound_.begin());
  }
  if (!taken.empty()) return taken;

  // Seeds are ranked alone, as they may beat what would be ranked with them.
  if (least == 0) families.resize(1);
  // Takes at most kShare entries of each family in turn.
  while (taken.size() < num_ranks && !families.empty()) {
    for (auto& [estimate, entries] : families) {
      const size_t share = estimate == 0 ? num_ranks : kShare;
      for (size_t k = 0; k < share && taken.size() < num_ranks; ++k) {
        const OpenEntry* first = first_of(entries);
        if (first == nullptr) break;
        taken.push_back(*first);
        entries->erase(entries->begin());
      }
    }
    std::erase_if(families, [&](const auto& family) {
      return first_of(family.second) == nullptr;
    });
  }
  return taken;
}

void Frontier::Reopen() {
  std::vector<OpenEntry> beaten;
  beaten.swap(beaten_);
  for (const OpenEntry& entry : beaten) Insert(entry);
}

double Frontier::LeastKey() const {
  double least = kInfinity;
  if (!to_bound_.empty()) least = to_bound_.begin()->key.first;
  for (const auto& [family, entries] : to_rank_) {
    if (!entries.empty()) {
      least = std::min(least, entries.begin()->key.first);
    }
  }
  for (const OpenEntry& entry : beaten_) {
    least = std::min(least, entry.key.first);
  }
  return least;
}

std::array<uint64_t, 3> Frontier::CountBelow(const Score& limit) const {
  std::array<uint64_t, 3> counts = {};
  const auto count = [&](const std::set<OpenEntry>& entries) {
    for (const OpenEntry& entry : entries) {
      if (entry.key >= limit) break;
      ++counts[static_cast<size_t>(entry.state)];
    }
  };
  count(to_bound_);
  for (const auto& [family, entries] : to_rank_) count(entries);
  return counts;
}

void Frontier::ForEach(
    const std::function<void(const OpenEntry&)>& visit) const {
  for (const OpenEntry& entry : to_bound_) visit(entry);
  for (const auto& [family, entries] : to_rank_) {
    for (const OpenEntry& entry : entries) visit(entry);
  }
  for (const OpenEntry& entry : beaten_) visit(entry);
}

}  // namespace weir::plan
