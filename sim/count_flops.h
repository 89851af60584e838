// SPDX-License-Identifier: Apache-2.0
// The FLOP of a batch by each convention of results/flops.h.
#ifndef WEIR_SIM_COUNT_FLOPS_H_
#define WEIR_SIM_COUNT_FLOPS_H_

#include "results/result.pb.h"
#include "scenarios/scenario.h"

namespace weir::sim {

// Returns the counts of a batch with its backward, or of its forward only.
// Empty for given costs and measured models. `num_stages`: those of the
// schedule, on which the recomputed layers may depend.
FlopCounts CountFlops(const scenarios::ResolvedScenario& scenario,
                      bool forward_only, int num_stages = 1);

}  // namespace weir::sim

#endif  // WEIR_SIM_COUNT_FLOPS_H_
