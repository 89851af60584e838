// SPDX-License-Identifier: Apache-2.0
// The joint search over tensor x pipeline x data (x expert) parallelism,
// chunks, microbatch size, schedule, recomputation, layers of each stage and
// GPU numbering. Candidates are pruned by bounds, ordered by ranked runs and
// confirmed by full simulations.
#ifndef WEIR_PLAN_SEARCH_JOINT_SEARCH_H_
#define WEIR_PLAN_SEARCH_JOINT_SEARCH_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/search/plan.pb.h"

namespace weir::plan {

struct SearchOptions {
  int num_processes = 1;
  // Plans to start from. The result is never worse than a seed that is legal
  // and fits.
  std::vector<Plan> seeds = {};
  // Called from time to time with the fraction done and the best plan so far.
  std::function<void(double done, const std::string& text)> progress = {};
};

// Returns InvalidArgument for errors in the request. Returns FailedPrecondition
// if nothing fits, with the constraint to relax and by how much.
absl::StatusOr<PlanReport> SearchPlans(const std::string& label,
                                       const PlanRequest& request,
                                       const SearchOptions& options = {});

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_JOINT_SEARCH_H_
