// SPDX-License-Identifier: Apache-2.0
// Simulates messages that are sent at once, without a schedule.
#ifndef WEIR_TESTS_SIM_MESSAGE_SECONDS_H_
#define WEIR_TESTS_SIM_MESSAGE_SECONDS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scenarios/cluster/network.h"
#include "sim/engine/engine.h"

namespace weir::sim {

struct Message {
  int from, to;
};

// Returns the time until all messages of `bytes`, sent at once, have arrived.
inline double SecondsOfMessages(const Cluster& cluster,
                                const std::vector<Message>& messages,
                                double bytes) {
  const scenarios::Network network(cluster);
  TaskGraph graph;
  for (const auto& [from, to] : messages) {
    const scenarios::Route route = network.RouteBetween(from, to);
    graph.pairs.push_back({from, to, {route.links, route.latency_seconds}});
    graph.AddFlow(static_cast<int32_t>(graph.pairs.size()) - 1, bytes);
  }
  graph.Finish();
  const auto recording = RunTaskGraph(graph, network.links());
  EXPECT_TRUE(recording.ok()) << recording.status();
  double last = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    last = std::max(last, recording->end_seconds()[i]);
  }
  return last;
}

}  // namespace weir::sim

#endif  // WEIR_TESTS_SIM_MESSAGE_SECONDS_H_
