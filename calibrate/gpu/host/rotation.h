// SPDX-License-Identifier: Apache-2.0
// How many sets of buffers to rotate over, and how launches become graphs.
#ifndef WEIR_CALIBRATE_GPU_HOST_ROTATION_H_
#define WEIR_CALIBRATE_GPU_HOST_ROTATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace weir {

// Sets of `set_bytes` that add up to more than three times the L2 cache: when a
// set's turn comes again the cache has nothing of it left. At least three
// (where `is_pass`: one, it is its own rotation), at most 1024, and no more
// than fit into 0.9 of `free_bytes`, of which each takes `allocated_bytes`.
// ResourceExhausted: not even one fits.
absl::StatusOr<int> NumSets(int64_t set_bytes, int64_t allocated_bytes,
                            int64_t l2_bytes, int64_t free_bytes, bool is_pass);

// Launches of one graph, by the first set it uses; the next launches use the
// next sets. Replayed in turn, again and again.
struct GraphPlan {
  int launches_per_graph = 0;
  std::vector<int> first_sets;  // a graph each
  int num_replays = 0;          // of all graphs together

  int num_launches() const { return launches_per_graph * num_replays; }
};

// At least `num_launches` >= 1, no more than about `kMaxGraphOps` operations in
// a graph. All sets are used before one is used again, within a graph and, as
// far as num_launches reaches, from one graph to the next.
inline constexpr int kMaxGraphOps = 2000;
GraphPlan PlanGraphs(int num_launches, int num_sets, int ops_per_launch);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_HOST_ROTATION_H_
