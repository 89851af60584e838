// SPDX-License-Identifier: Apache-2.0
// What a rank holds at least, from its order and its stages' bytes alone.
#ifndef WEIR_SIM_LEAST_MEMORY_H_
#define WEIR_SIM_LEAST_MEMORY_H_

#include <vector>

#include "sim/pipeline_graph.h"

namespace weir {

// Of what TraceMemory (memory.h) counts: everything that is there for good, and
// what passes hold, as their order decides it. Left out is what depends on
// moments: transfers on their way, gathers ahead of their passes, activations
// that are still being offloaded. Never above a GPU's peak of any run.
// By rank.
std::vector<double> LeastPeakBytes(const PipelineInputs& inputs);

}  // namespace weir

#endif  // WEIR_SIM_LEAST_MEMORY_H_
