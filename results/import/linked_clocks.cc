// SPDX-License-Identifier: Apache-2.0
#include "results/import/linked_clocks.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weir::results {

LinkedClocks::LinkedClocks(int num_clocks) : parent_(num_clocks) {
  std::iota(parent_.begin(), parent_.end(), 0);
}

int LinkedClocks::FirstOf(int clock) {
  while (parent_[clock] != clock) {
    // Halves the path.
    parent_[clock] = parent_[parent_[clock]];
    clock = parent_[clock];
  }
  return clock;
}

void LinkedClocks::Link(int a, int b) {
  a = FirstOf(a);
  b = FirstOf(b);
  parent_[std::max(a, b)] = std::min(a, b);
}

std::vector<std::vector<int>> LinkedClocks::Sets() {
  std::vector<std::vector<int>> by_first(parent_.size());
  for (int clock = 0; clock < static_cast<int>(parent_.size()); ++clock) {
    by_first[FirstOf(clock)].push_back(clock);
  }
  std::vector<std::vector<int>> sets;
  for (std::vector<int>& set : by_first) {
    if (!set.empty()) sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace weir::results
