// SPDX-License-Identifier: Apache-2.0
// Lower bounds on the memory of ranks, from their orders and their stages'
// bytes alone.
#ifndef WEIR_SIM_BOUNDS_LEAST_MEMORY_H_
#define WEIR_SIM_BOUNDS_LEAST_MEMORY_H_

#include <vector>

#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

// Returns a lower bound on the peak bytes of every GPU of a rank in any run, by
// rank. Of what TraceMemory (memory.h) counts, it includes permanent
// allocations and what passes hold in their order. It leaves out what depends
// on exact times: transfers in flight, gathers ahead of their passes, and
// activations that are still being offloaded.
std::vector<double> LeastPeakBytes(const PipelineInputs& inputs);

}  // namespace weir::sim

#endif  // WEIR_SIM_BOUNDS_LEAST_MEMORY_H_
