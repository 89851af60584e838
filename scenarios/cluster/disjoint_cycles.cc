// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/disjoint_cycles.h"

#include <algorithm>
#include <utility>

namespace weir::scenarios {
namespace {

// NCCL opens at most 32 channels; a cycle needs two of them.
constexpr int kMaxCycles = 16;
// Limits the recursion depth: vertices times cycles.
constexpr int kMaxDepth = 1024;
constexpr int kMaxSteps = 200000;

struct Search {
  int size;
  std::vector<int32_t> lanes;
  int bound = 0;  // upper bound on the number of cycles
  int steps = 0;
  std::vector<int> path = {0};
  std::vector<bool> visited = {};
  std::vector<std::vector<int>> cycles = {};
  std::vector<std::vector<int>> best = {};

  int32_t& Lanes(int a, int b) { return lanes[a * size + b]; }

  void Take(int a, int b, int num) {
    Lanes(a, b) -= num;
    Lanes(b, a) -= num;
  }

  bool Done() const {
    return steps >= kMaxSteps || static_cast<int>(best.size()) == bound;
  }

  // Requires: the path contains every vertex. Closes it and searches for the
  // next cycle.
  void Close() {
    const int last = path.back();
    if (Lanes(last, 0) == 0) return;
    // Considers each cycle in one direction only, and each set in one order
    // only.
    if (path[1] > last || (!cycles.empty() && path < cycles.back())) return;
    Take(last, 0, 1);
    cycles.push_back(path);
    if (cycles.size() > best.size()) best = cycles;
    if (!Done()) {
      std::vector<int> closed = {0};
      std::swap(path, closed);
      std::vector<bool> seen(size);
      seen[0] = true;
      std::swap(visited, seen);
      Extend();
      std::swap(visited, seen);
      std::swap(path, closed);
    }
    cycles.pop_back();
    Take(last, 0, -1);
  }

  void Extend() {
    if (static_cast<int>(path.size()) == size) return Close();
    for (int next = 1; next < size && !Done(); ++next) {
      const int from = path.back();
      if (visited[next] || Lanes(from, next) == 0) continue;
      ++steps;
      Take(from, next, 1);
      visited[next] = true;
      path.push_back(next);
      Extend();
      path.pop_back();
      visited[next] = false;
      Take(from, next, -1);
    }
  }
};

// Returns an upper bound on the number of cycles, each of which uses two edges
// of every vertex.
int Bound(int size, const std::vector<int32_t>& lanes) {
  int bound = std::min(kMaxCycles, std::max(kMaxDepth / size, 1));
  for (int vertex = 0; vertex < size; ++vertex) {
    int64_t degree = 0;
    for (int other = 0; other < size; ++other)
      degree += lanes[vertex * size + other];
    bound = static_cast<int>(std::min<int64_t>(bound, degree / 2));
  }
  return bound;
}

}  // namespace

std::vector<std::vector<int>> DisjointCycles(int size,
                                             std::vector<int32_t> lanes) {
  if (size < 3) return {};
  Search search{size, std::move(lanes)};
  search.bound = Bound(size, search.lanes);
  search.visited.assign(size, false);
  search.visited[0] = true;
  if (search.bound > 0) search.Extend();
  return search.best;
}

}  // namespace weir::scenarios
