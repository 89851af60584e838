// SPDX-License-Identifier: Apache-2.0
// What to say when there is no plan: which constraint to relax, by how much.
#ifndef WEIR_PLAN_INFEASIBLE_H_
#define WEIR_PLAN_INFEASIBLE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plan/best_first.h"
#include "plan/crew.h"
#include "plan/seeds.h"
#include "plan/space.h"

namespace weir {

// Every candidate is illegal. `problems`: with how many each refused.
absl::Status NothingLegal(const Space& space,
                          const std::map<std::string, uint64_t>& problems);

// Candidates are legal and none fits: looks for the smallest, and for the GPUs
// with which something would fit.
absl::Status NothingFits(const PlanRequest& request, const Space& space,
                         const std::vector<SearchFigures>& shapes,
                         const std::vector<Seed>& seeds,
                         const SearchOptions& options, Crew* crew);

}  // namespace weir

#endif  // WEIR_PLAN_INFEASIBLE_H_
