// SPDX-License-Identifier: Apache-2.0
// Describes a cluster as text and as JSON.
#ifndef WEIR_SCENARIOS_CLUSTER_DESCRIBE_CLUSTER_H_
#define WEIR_SCENARIOS_CLUSTER_DESCRIBE_CLUSTER_H_

#include <nlohmann/json.hpp>
#include <string>

#include "scenarios/cluster/cluster.pb.h"

namespace weir::scenarios {

// Returns the bytes per second in one direction between the first half of the
// nodes and the rest; 0 for a single node. Halves under different leaf switches
// share the oversubscribed uplinks. A dragonfly is cut between whole groups, or
// whole switches of its only group, as evenly as possible. Requires:
// ValidateCluster(cluster) is OK.
double BisectionBytesPerSecond(const Cluster& cluster);

// Returns the output of `weir cluster show`. Requires: as above.
//
//   p3-16xlarge: 8 nodes, 64 GPUs
//
//   8 x p3.16xlarge: 8 GPUs (v100-sxm2-16gb)
//     NVLink  mesh of 24 links, 25 GB/s each way, 3.4 us
//             to  0 1 2 3 4 5 6 7
//         gpu0    - 1 1 2 2 . . .
//             ...
//     PCIe    GPU 12 GB/s, uplink 12 GB/s, between sockets 6 GB/s, 1.9 us
//         socket0 -+- pcie0 --- gpu0 gpu1
//             ...
//     NICs    1 x 3.12 GB/s (25 Gb/s), shared by 8 GPUs
//
//   fabric: one switch, 30 us
//   bisection: 12.5 GB/s each way between 4 and 4 nodes
std::string DescribeCluster(const Cluster& cluster);

// Returns the same as JSON, with the field names of cluster.proto as keys.
// Requires: as above.
nlohmann::ordered_json ClusterJson(const Cluster& cluster);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CLUSTER_DESCRIBE_CLUSTER_H_
