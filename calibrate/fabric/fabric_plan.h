// SPDX-License-Identifier: Apache-2.0
// Message sizes and groups to measure.
#ifndef WEIR_CALIBRATE_FABRIC_FABRIC_PLAN_H_
#define WEIR_CALIBRATE_FABRIC_FABRIC_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/fabric/topology.h"
#include "calibrate/pricing/collective_seconds.h"

namespace weir::calibrate {

inline constexpr double kLeastBytes = 1024;

// Returns the sizes at which NCCL changes its sending method (v2.28.9
// src/enqueue.cc): 16 KiB, 64 KiB, 128 KiB and 16 MiB per channel, for doubling
// numbers of channels. Ascending and distinct, within (kLeastBytes, max_bytes).
std::vector<double> TransferKnots(int num_channels, double max_bytes);

// Returns powers of two, the values halfway between them, the knots, and
// max_bytes, ascending. Requires: max_bytes > kLeastBytes.
std::vector<double> TransferSizes(int num_channels, double max_bytes);

// Returns powers of two.
std::vector<double> CollectiveSizes(double max_bytes);

// The ranks of a collective, the same number in each of its nodes.
struct GroupPlan {
  std::vector<int> ranks;
  int ranks_per_node = 1;
  std::string text;  // "8 ranks, 2 nodes"
};

// Returns groups of `sizes` ranks; empty: 2, 4, 8, ... and all ranks. A group
// has ranks of one node if they fit, otherwise whole nodes; if there are enough
// nodes, a group of one rank per node is added. Returns InvalidArgument for a
// size for which no group is possible.
absl::StatusOr<std::vector<GroupPlan>> PlanGroups(
    const std::vector<RankPlace>& places, const std::vector<int>& sizes);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_FABRIC_PLAN_H_
