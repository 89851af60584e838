// SPDX-License-Identifier: Apache-2.0
// Finds rings in a mesh of NVLinks, as cycles of a graph.
#ifndef WEIR_SCENARIOS_CLUSTER_DISJOINT_CYCLES_H_
#define WEIR_SCENARIOS_CLUSTER_DISJOINT_CYCLES_H_

#include <cstdint>
#include <vector>

namespace weir::scenarios {

// Returns Hamiltonian cycles of an undirected multigraph that share no edge:
// the maximum number if the search finishes within its fixed number of steps
// (always on the machines of the papers), otherwise the largest set found.
// lanes[a * size + b] == lanes[b * size + a] is the number of edges between two
// vertices. Every cycle begins with vertex 0. Returns no cycles for fewer than
// 3 vertices. Deterministic.
std::vector<std::vector<int>> DisjointCycles(int size,
                                             std::vector<int32_t> lanes);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CLUSTER_DISJOINT_CYCLES_H_
