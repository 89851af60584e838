// SPDX-License-Identifier: Apache-2.0
// Which sizes and groups are measured.
#ifndef WEIR_CALIBRATE_NETWORK_PLAN_H_
#define WEIR_CALIBRATE_NETWORK_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/collective_seconds.h"
#include "calibrate/network/topology.h"

namespace weir {

inline constexpr double kLeastBytes = 1024;

// Sizes at which NCCL changes how it sends (v2.28.9 src/enqueue.cc): 16 KiB,
// 64 KiB, 128 KiB and 16 MiB for every channel, and channels go by doubling.
// Ascending, each once, within (kLeastBytes, max_bytes).
std::vector<double> TransferKnots(int num_channels, double max_bytes);

// Powers of two, what lies halfway between them, the knots, max_bytes.
// Ascending. REQUIRES: max_bytes > kLeastBytes.
std::vector<double> TransferSizes(int num_channels, double max_bytes);

// Powers of two.
std::vector<double> CollectiveSizes(double max_bytes);

// Ranks that hold a collective: as many in each of its nodes.
struct GroupPlan {
  std::vector<int> ranks;
  int ranks_per_node = 1;
  std::string text;  // "8 ranks, 2 nodes"
};

// Groups of `sizes` ranks; empty: 2, 4, 8, ... and all ranks. Each is made of
// ranks of one node where they fit, else of whole nodes, and, where there are
// so many nodes, of one rank a node too. InvalidArgument: a size that the ranks
// cannot make.
absl::StatusOr<std::vector<GroupPlan>> PlanGroups(
    const std::vector<RankPlace>& places, const std::vector<int>& sizes);

}  // namespace weir

#endif  // WEIR_CALIBRATE_NETWORK_PLAN_H_
