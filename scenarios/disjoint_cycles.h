// SPDX-License-Identifier: Apache-2.0
// Rings in a mesh of NVLinks, as graph theory sees them.
#ifndef WEIR_SCENARIOS_DISJOINT_CYCLES_H_
#define WEIR_SCENARIOS_DISJOINT_CYCLES_H_

#include <cstdint>
#include <vector>

namespace weir {

// Finds Hamiltonian cycles of an undirected multigraph that share no edge: as
// many as there can be where the search ends within its fixed number of steps
// (always on the machines of the papers), else the most it has met.
// lanes[a * size + b] == lanes[b * size + a] is the number of edges between
// two vertices. Every cycle begins with vertex 0; fewer than 3 vertices have
// none. Deterministic.
std::vector<std::vector<int>> DisjointCycles(int size,
                                             std::vector<int32_t> lanes);

}  // namespace weir

#endif  // WEIR_SCENARIOS_DISJOINT_CYCLES_H_
