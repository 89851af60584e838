// SPDX-License-Identifier: Apache-2.0
// Distances between ranks.
#ifndef WEIR_CALIBRATE_FABRIC_TOPOLOGY_H_
#define WEIR_CALIBRATE_FABRIC_TOPOLOGY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/fabric/control.pb.h"
#include "calibrate/fabric/topology.pb.h"
#include "calibrate/profile/measured_costs.pb.h"

namespace weir::calibrate {

// Location of a rank: indices of its node and leaf, both in the order of ranks.
struct RankPlace {
  int node = 0;
  int leaf = -1;                      // -1: unknown
  std::vector<std::string> switches;  // to which its GPU is connected
  std::string gpu_address;
};

// Reads and checks a file. Returns InvalidArgument if there are no leaves, or a
// node is at two leaves.
absl::StatusOr<NetworkTopology> LoadTopology(const std::string& path);

// Returns one place per rank. Leaves come from the file, or from Slurm's
// address of the node ("spine.leaf.node": all but the node). Returns
// InvalidArgument with all nodes that are missing from the file, if one is
// given. Requires: presences in the order of ranks.
absl::StatusOr<std::vector<RankPlace>> PositionsOf(
    const std::vector<Presence>& presences, const NetworkTopology* topology);

// Returns SAME_NODE or SAME_SWITCH within a node. Nodes whose leaf is unknown
// are ACROSS_SPINES, the farthest.
LinkClass::Distance DistanceOf(const RankPlace& a, const RankPlace& b);

absl::string_view NameOf(LinkClass::Distance distance);  // "same leaf"

struct RankPair {
  int from = 0;
  int to = 0;
};

// Returns up to `num_pairs` pairs of every existing distance, nearest distance
// first. They are spread over ranks (none twice while others are left), nodes
// and leaves. The same places and seed yield the same pairs.
std::vector<std::pair<LinkClass::Distance, std::vector<RankPair>>> SamplePairs(
    const std::vector<RankPlace>& places, int num_pairs, uint64_t seed);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_TOPOLOGY_H_
