// SPDX-License-Identifier: Apache-2.0
// Ring collectives as tasks.
#ifndef WEIR_SIM_RINGS_H_
#define WEIR_SIM_RINGS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "scenarios/network.h"
#include "sim/task_graph.h"

namespace weir {

// The rings over some GPUs.
struct RingSet {
  std::vector<int32_t> pairs;  // one per hop of every ring
  int num_rings = 0;
  int num_members = 0;
  double hop_seconds = 0;  // largest latency of any hop
};

// How often a ring passes its bytes on: an all-gather or a reduce-scatter goes
// round once, an all-reduce twice.
inline constexpr int kOnce = 1, kTwice = 2;

// The pairs of GPUs that send, and the ways between them.
class Ways {
 public:
  Ways(const Network& network, TaskGraph* tasks)
      : network_(network), tasks_(tasks) {}

  const Route& RouteOf(int from, int to);
  // Index into TaskGraph::pairs.
  int32_t PairOf(int from, int to);
  // A GPU and its host's memory; -1 where they are not joined.
  int32_t HostPairOf(int gpu, bool to_host);
  RingSet RingsOver(const std::vector<int>& gpus);

  // Adds `count` collectives of `bytes` in all, from the end of `before` to the
  // timers `after`: every hop carries its ring's share of all steps at once,
  // (n-1)/n a pass, and the latencies of the other steps follow (measured equal
  // to the single steps, which cost n times as many flows).
  void AddCollective(const RingSet& rings, int passes, double bytes, int count,
                     int32_t before, std::initializer_list<int32_t> after);

 private:
  const Network& network_;
  TaskGraph* tasks_;
  absl::flat_hash_map<std::pair<int, int>, int32_t> pair_index_;
  absl::node_hash_map<std::pair<int, int>, Route> routes_;
};

}  // namespace weir

#endif  // WEIR_SIM_RINGS_H_
