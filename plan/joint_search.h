// SPDX-License-Identifier: Apache-2.0
// The joint search: tensor x pipeline x data (x expert) parallelism, chunks,
// microbatch, schedule, recomputation, layers of each stage and GPU numbering
// together. Bounds prune, ranked runs order, full simulations confirm.
#ifndef WEIR_PLAN_JOINT_SEARCH_H_
#define WEIR_PLAN_JOINT_SEARCH_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/plan.pb.h"

namespace weir {

struct SearchOptions {
  int num_processes = 1;
  // Plans to start from: the result is never worse than any that is legal and
  // fits.
  std::vector<Plan> seeds = {};
  // Called now and then: part done, and the best so far.
  std::function<void(double done, const std::string& text)> progress = {};
};

// InvalidArgument for what is wrong with the request. FailedPrecondition where
// nothing fits: says which constraint to relax, and by how much.
absl::StatusOr<PlanReport> SearchPlans(const std::string& label,
                                       const PlanRequest& request,
                                       const SearchOptions& options = {});

}  // namespace weir

#endif  // WEIR_PLAN_JOINT_SEARCH_H_
