// SPDX-License-Identifier: Apache-2.0
// Errors for infeasible requests: which constraint to relax, and by how much.
// They are FailedPrecondition.
#ifndef WEIR_PLAN_SEARCH_INFEASIBLE_H_
#define WEIR_PLAN_SEARCH_INFEASIBLE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plan/search/best_first.h"
#include "plan/search/search_workers.h"
#include "plan/search/seeds.h"
#include "plan/search/space.h"

namespace weir::plan {

// The error if every candidate is invalid. `problems` maps each reason to the
// number of candidates that it refused.
absl::Status NothingValid(const Space& space,
                          const std::map<std::string, uint64_t>& problems);

// The error if legal candidates exist but none fits. Searches for the smallest,
// and for a number of GPUs on which a plan would fit. Returns Cancelled when
// interrupted.
absl::Status NothingFits(const PlanRequest& request, const Space& space,
                         const std::vector<SearchEstimate>& shapes,
                         const std::vector<Seed>& seeds,
                         const SearchOptions& options, SearchWorkers* workers);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_INFEASIBLE_H_
