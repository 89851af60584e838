// SPDX-License-Identifier: Apache-2.0
#include "results/import/difference_limits.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "base/infinity.h"

namespace weir::results {
namespace {

// Returns an unknown on a cycle of `because`, or -1.
int FindCycle(const std::vector<int>& because) {
  std::vector<int> seen_from(because.size(), -1);
  for (int start = 0; start < static_cast<int>(because.size()); ++start) {
    int at = start;
    while (at >= 0 && seen_from[at] < 0) {
      seen_from[at] = start;
      at = because[at];
    }
    if (at >= 0 && seen_from[at] == start) return at;
  }
  return -1;
}

}  // namespace

DifferenceLimits::DifferenceLimits(int size)
    : size_(size), limits_(static_cast<size_t>(size) * size, kInfinity) {
  for (int i = 0; i < size; ++i) at(i, i) = 0;
}

std::vector<std::vector<DifferenceLimits::Limit>> DifferenceLimits::Neighbours()
    const {
  std::vector<std::vector<Limit>> neighbours(size_);
  for (int i = 0; i < size_; ++i) {
    for (int j = 0; j < size_; ++j) {
      if (i != j && at(i, j) < kInfinity) {
        neighbours[i].push_back({j, at(i, j)});
      }
    }
  }
  return neighbours;
}

DifferenceLimits::Solution DifferenceLimits::AnySolution() const {
  const std::vector<std::vector<Limit>> neighbours = Neighbours();
  Solution solution;
  std::vector<double>& x = solution.x;
  x.assign(size_, 0);
  std::vector<int> because(size_, -1);
  while (true) {
    bool changed = false;
    for (int i = 0; i < size_; ++i) {
      for (const Limit& limit : neighbours[i]) {
        const double most = x[limit.to] + limit.most;
        if (most >= x[i] - kResolutionSeconds) continue;
        x[i] = most;
        because[i] = limit.to;
        changed = true;
      }
    }
    if (!changed) return solution;
    // A cycle means that its limits add up to less than 0. Looking for it in
    // each round finds a contradiction early.
    const int start = FindCycle(because);
    if (start < 0) continue;
    int i = start;
    do {
      solution.cycle.push_back(i);
      solution.cycle_sum += at(i, because[i]);
      i = because[i];
    } while (i != start);
    return solution;
  }
}

void DifferenceLimits::Close(const std::vector<double>& x) {
  using Entry = std::pair<double, int>;  // length of the path, unknown
  std::vector<std::vector<Limit>> neighbours = Neighbours();
  // With these lengths, at least 0, Dijkstra's algorithm applies.
  for (int i = 0; i < size_; ++i) {
    for (Limit& limit : neighbours[i]) {
      limit.most = std::max(limit.most - x[i] + x[limit.to], 0.0);
    }
  }
  std::vector<double> length(size_);
  for (int source = 0; source < size_; ++source) {
    length.assign(size_, kInfinity);
    length[source] = 0;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    queue.emplace(0.0, source);
    while (!queue.empty()) {
      const auto [least, i] = queue.top();
      queue.pop();
      if (least > length[i]) continue;
      for (const Limit& limit : neighbours[i]) {
        const double through = least + limit.most;
        if (through >= length[limit.to]) continue;
        length[limit.to] = through;
        queue.emplace(through, limit.to);
      }
    }
    for (int j = 0; j < size_; ++j) {
      at(source, j) = length[j] + x[source] - x[j];
    }
  }
}

}  // namespace weir::results
