// SPDX-License-Identifier: Apache-2.0
#include "sim/rings.h"

#include <algorithm>
#include <cmath>

namespace weir {

const Route& Ways::RouteOf(int from, int to) {
  const auto [at, added] = routes_.try_emplace({from, to});
  if (added) at->second = network_.RouteBetween(from, to);
  return at->second;
}

int32_t Ways::PairOf(int from, int to) {
  const auto [at, added] = pair_index_.try_emplace(
      {from, to}, static_cast<int32_t>(tasks_->pairs.size()));
  if (added) tasks_->pairs.push_back({from, to, RouteOf(from, to)});
  return at->second;
}

int32_t Ways::HostPairOf(int gpu, bool to_host) {
  Route route =
      to_host ? network_.RouteToHost(gpu) : network_.RouteFromHost(gpu);
  if (route.links.empty()) return -1;
  // The host stands behind all GPUs, once for each of them.
  const int host = network_.num_gpus() + gpu;
  const std::pair<int, int> ends =
      to_host ? std::pair(gpu, host) : std::pair(host, gpu);
  const auto [at, added] =
      pair_index_.try_emplace(ends, static_cast<int32_t>(tasks_->pairs.size()));
  if (added) {
    tasks_->pairs.push_back({ends.first, ends.second, std::move(route)});
  }
  return at->second;
}

RingSet Ways::RingsOver(const std::vector<int>& gpus) {
  RingSet set;
  set.num_members = static_cast<int>(gpus.size());
  for (const Ring& ring : network_.RingsOver(gpus)) {
    ++set.num_rings;
    for (size_t i = 0; i < ring.gpus.size(); ++i) {
      const int32_t pair =
          PairOf(ring.gpus[i], ring.gpus[(i + 1) % ring.gpus.size()]);
      set.pairs.push_back(pair);
      set.hop_seconds =
          std::max(set.hop_seconds, tasks_->pairs[pair].route.latency_seconds);
    }
  }
  return set;
}

void Ways::AddCollective(const RingSet& rings, int passes, double bytes,
                         int count, int32_t before,
                         std::initializer_list<int32_t> after) {
  const int n = rings.num_members;
  const double hop_bytes =
      std::round(bytes * passes * (n - 1) / n / rings.num_rings);
  if (hop_bytes == 0) {  // a stage without parameters
    for (int32_t task : after) tasks_->AddEdge(before, task);
    return;
  }
  for (int32_t pair : rings.pairs) {
    const int32_t flow = tasks_->AddFlow(pair, hop_bytes);
    tasks_->AddEdge(before, flow);
    for (int32_t task : after) tasks_->AddEdge(flow, task);
  }
  const double steps = 1.0 * passes * (n - 1) * count - 1;
  for (int32_t task : after) {
    tasks_->SetSeconds(task, steps * rings.hop_seconds);
  }
}

}  // namespace weir
