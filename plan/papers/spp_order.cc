// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>

#include "plan/papers/spp.h"

namespace weir {
namespace {

// Both ways; what no link limits weighs more than all that links do.
std::vector<std::vector<double>> Weights(
    const std::vector<std::vector<double>>& bandwidth,
    const std::vector<int>& devices) {
  double finite = 0;
  for (int from : devices) {
    for (int to : devices) {
      if (bandwidth[from][to] < std::numeric_limits<double>::infinity()) {
        finite += bandwidth[from][to];
      }
    }
  }
  const size_t n = devices.size();
  std::vector<std::vector<double>> weights(n, std::vector<double>(n));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (i == j) continue;
      weights[i][j] = std::min(bandwidth[devices[i]][devices[j]], finite + 1) +
                      std::min(bandwidth[devices[j]][devices[i]], finite + 1);
    }
  }
  return weights;
}

void AppendOrder(const PlannerWork& work, const std::vector<int>& devices,
                 std::vector<int>* order) {
  if (devices.size() < 2) {
    order->insert(order->end(), devices.begin(), devices.end());
    return;
  }
  const std::vector<int> side = MinimumCut(work.bytes_per_second, devices);
  std::vector<int> rest;
  std::set_difference(devices.begin(), devices.end(), side.begin(), side.end(),
                      std::back_inserter(rest));
  AppendOrder(work, rest, order);
  AppendOrder(work, side, order);
}

}  // namespace

std::vector<int> MinimumCut(const std::vector<std::vector<double>>& bandwidth,
                            const std::vector<int>& devices) {
  std::vector<std::vector<double>> weight = Weights(bandwidth, devices);
  const int n = static_cast<int>(devices.size());
  std::vector<std::vector<int>> merged(n);
  for (int i = 0; i < n; ++i) merged[i] = {i};
  std::vector<int> left(n);
  std::iota(left.begin(), left.end(), 0);
  double best = std::numeric_limits<double>::infinity();
  std::vector<int> side;
  while (left.size() > 1) {
    // Orders what is left by how strongly it hangs on what came before.
    std::vector<double> strength(n);
    std::vector<int> rest = left;
    int before = -1, last = -1;
    while (!rest.empty()) {
      const auto next = std::max_element(
          rest.begin(), rest.end(),
          [&](int a, int b) { return strength[a] < strength[b]; });
      before = last;
      last = *next;
      rest.erase(next);
      for (int node : rest) strength[node] += weight[last][node];
    }
    if (strength[last] < best) {
      best = strength[last];
      side = merged[last];
    }
    merged[before].insert(merged[before].end(), merged[last].begin(),
                          merged[last].end());
    for (int node : left) {
      weight[before][node] += weight[last][node];
      weight[node][before] = weight[before][node];
    }
    weight[before][before] = 0;
    left.erase(std::find(left.begin(), left.end(), last));
  }
  std::sort(side.begin(), side.end());
  if (side.front() == 0) {
    std::vector<int> other;
    for (int i = 0; i < n; ++i) {
      if (!std::binary_search(side.begin(), side.end(), i)) other.push_back(i);
    }
    side = other;
  }
  for (int& node : side) node = devices[node];
  std::sort(side.begin(), side.end());
  return side;
}

std::vector<int> SppDeviceOrder(const PlannerWork& work) {
  std::vector<int> devices(work.devices.size()), order;
  std::iota(devices.begin(), devices.end(), 0);
  AppendOrder(work, devices, &order);
  return order;
}

}  // namespace weir
