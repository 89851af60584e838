// SPDX-License-Identifier: Apache-2.0
// The last look at a plan: simulated in full and linted.
#ifndef WEIR_PLAN_CONFIRM_H_
#define WEIR_PLAN_CONFIRM_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/best_first.h"
#include "plan/plan.pb.h"
#include "results/result.pb.h"

namespace weir {

struct Confirmed {
  Plan plan;
  Result result;           // without GPUs and timeline
  std::string refused;     // why it is no plan after all; empty: it is one
  bool simulated = false;  // false: it was interrupted before
};

// Simulates each plan in a process of its own, under the first name that the
// space has for its order of passes, until `stop`, which is called about ten
// times a second. Returns them in their order. `price` is per GPU and hour, 0:
// unknown.
absl::StatusOr<std::vector<Confirmed>> Confirm(
    const Space& space, const std::vector<Found>& found, double price,
    int num_processes, const std::function<bool()>& stop);

// Returns the plan with the figures of its ranked run.
Confirmed Unconfirmed(const Space& space, const Found& found, double price);

}  // namespace weir

#endif  // WEIR_PLAN_CONFIRM_H_
