// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/flow_pairs.h"

#include <algorithm>

namespace weir::sim {

double SecondsPerByte(const scenarios::Network& network,
                      const scenarios::Route& route) {
  double seconds = 0;
  for (int32_t link : route.links) {
    seconds = std::max(seconds, 1 / network.links()[link].bytes_per_second);
  }
  return seconds;
}

int FlowPairs::HostOf(double latency_seconds) {
  const auto known =
      std::find(latencies_.begin(), latencies_.end(), latency_seconds);
  const int host = static_cast<int>(known - latencies_.begin());
  if (known == latencies_.end()) latencies_.push_back(latency_seconds);
  return host;
}

std::pair<int32_t, bool> FlowPairs::Find(int from, int to, int host) {
  const auto [at, added] = pair_index_.try_emplace(
      {from, to, host}, static_cast<int32_t>(tasks_->pairs.size()));
  return {at->second, added};
}

}  // namespace weir::sim
