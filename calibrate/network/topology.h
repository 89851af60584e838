// SPDX-License-Identifier: Apache-2.0
// Who is near whom.
#ifndef WEIR_CALIBRATE_NETWORK_TOPOLOGY_H_
#define WEIR_CALIBRATE_NETWORK_TOPOLOGY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/measured_costs.pb.h"
#include "calibrate/network/control.pb.h"
#include "calibrate/network/topology.pb.h"

namespace weir {

// Where a rank is: indices of its node and leaf, both in the order of ranks.
struct RankPlace {
  int node = 0;
  int leaf = -1;                      // -1: not known
  std::vector<std::string> switches;  // that its GPU is at
  std::string gpu_address;
};

// Reads and checks a file. InvalidArgument: no leaves, or a node at two.
absl::StatusOr<NetworkTopology> LoadTopology(const std::string& path);

// One place a rank. Leaves come from the file, or from Slurm's address of the
// node ("spine.leaf.node": all but the node). With a file, a node that is not
// in it is InvalidArgument (all of them at once); REQUIRES: presences in the
// order of ranks.
absl::StatusOr<std::vector<RankPlace>> PlacesOf(
    const std::vector<Presence>& presences, const NetworkTopology* topology);

// SAME_NODE or SAME_SWITCH within a node. Between nodes whose leaf is not
// known: ACROSS_SPINES, the farthest.
LinkClass::Distance DistanceOf(const RankPlace& a, const RankPlace& b);

absl::string_view NameOf(LinkClass::Distance distance);  // "same leaf"

struct RankPair {
  int from = 0;
  int to = 0;
};

// Up to `num_pairs` pairs of every distance there is, nearest distance first.
// They are spread: over ranks (none twice while others are left), nodes and
// leaves. Same places and seed, same pairs.
std::vector<std::pair<LinkClass::Distance, std::vector<RankPair>>> SamplePairs(
    const std::vector<RankPlace>& places, int num_pairs, uint64_t seed);

}  // namespace weir

#endif  // WEIR_CALIBRATE_NETWORK_TOPOLOGY_H_
