// SPDX-License-Identifier: Apache-2.0
// The joint search over tensor x pipeline x data (x expert) parallelism,
// chunks, microbatch size, schedule, recomputation, layers of each stage and
// GPU numbering. Candidates are pruned by bounds, ordered by ranked runs and
// confirmed by full simulations.
#ifndef WEIR_PLAN_SEARCH_JOINT_SEARCH_H_
#define WEIR_PLAN_SEARCH_JOINT_SEARCH_H_

#include <chrono>
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
  // Returns further seeds, given the best plan in words. As this may take
  // seconds, a quick search for a first plan that fits precedes it
  // (plan/search/quick_plan.h).
  std::function<std::vector<Plan>(const std::string& best)> find_seeds = {};
  // The search ends at this time, with the best plans so far.
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::time_point::max();
  // Whether to look for neighbors of the best plan.
  bool neighbors = false;
  // Called about ten times a second with the best plan so far.
  std::function<void(const std::string& text)> progress = {};
  // Called with each plan that is better than those before, as soon as it is
  // ranked: with its scenario, sizes, time and memory, which the full
  // simulation confirms later. On a Pareto front, the fastest counts as best.
  std::function<void(const Plan& plan)> improved = {};
};

// Returns true if a search must end: it was interrupted, or is out of time.
bool MustEnd(const SearchOptions& options);

// Returns InvalidArgument for errors in the request. Returns FailedPrecondition
// if nothing fits, with the constraint to relax and by how much.
absl::StatusOr<PlanReport> SearchPlans(const std::string& label,
                                       const PlanRequest& request,
                                       const SearchOptions& options = {});

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_JOINT_SEARCH_H_
