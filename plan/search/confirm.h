// SPDX-License-Identifier: Apache-2.0
// Confirms plans: simulates them in full and lints their schedules.
#ifndef WEIR_PLAN_SEARCH_CONFIRM_H_
#define WEIR_PLAN_SEARCH_CONFIRM_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/search/best_first.h"
#include "plan/search/plan.pb.h"
#include "results/result.pb.h"

namespace weir::plan {

struct Confirmed {
  Plan plan;
  Result result;           // without GPUs and timeline
  std::string refused;     // why the plan was rejected; empty: it was not
  bool simulated = false;  // false: interrupted before
  int shape = -1;          // index in the space, with variants; -1: not in it
};

// Simulates each plan in a process of its own, under the first name that the
// space has for its order of passes, and returns the results in the order of
// `found`. Calls `stop` about ten times a second and ends when it returns true.
// `price` is per GPU and hour; 0: unknown. Returns Unavailable if no process
// can be created.
absl::StatusOr<std::vector<Confirmed>> Confirm(
    const Space& space, const std::vector<RankedPlan>& found, double price,
    int num_processes, const std::function<bool()>& stop);

// Returns the plan with the time and memory of its ranked run.
Confirmed Unconfirmed(const Space& space, const RankedPlan& found,
                      double price);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_CONFIRM_H_
