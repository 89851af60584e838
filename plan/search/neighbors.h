// SPDX-License-Identifier: Apache-2.0
// The plans around the best one, which show what each choice is worth.
#ifndef WEIR_PLAN_SEARCH_NEIGHBORS_H_
#define WEIR_PLAN_SEARCH_NEIGHBORS_H_

#include <vector>

#include "absl/status/status.h"
#include "plan/search/confirm.h"
#include "plan/search/search_workers.h"
#include "plan/search/space.h"

namespace weir::plan {

// Adds to the report the plans of the space that differ from `best` in one
// choice, with the same number of GPUs: the next smaller and the next larger
// tensor-parallel size, pipeline, microbatch, number of chunks and
// expert-parallel size, each other schedule, recomputation, sharding, order and
// mode, and an even cut. Data parallelism follows from the others. Leaves out
// those with the same time and memory, and those that are not simulated before
// the search must end. Of several cuts of the layers, takes the one with the
// lowest bound on the time among those that fit by their bounds. `shapes[i]` is
// the estimate of `space.shapes[i]`. Returns Unavailable if the machine cannot
// start processes.
absl::Status AddNeighbors(const Space& space,
                          const std::vector<SearchEstimate>& shapes,
                          const Confirmed& best, const SearchOptions& options,
                          SearchWorkers* workers, PlanReport* report);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_NEIGHBORS_H_
