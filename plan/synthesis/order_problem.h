// SPDX-License-Identifier: Apache-2.0
// What a schedule is looked for: passes with their times, what they hold, and
// how much a rank may hold.
#ifndef WEIR_PLAN_SYNTHESIS_ORDER_PROBLEM_H_
#define WEIR_PLAN_SYNTHESIS_ORDER_PROBLEM_H_

#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schedules/schedule.h"

namespace weir {

enum class OrderObjective {
  kMakespan,  // start of the first pass to end of the last
  kSpan,      // the same on one rank, the largest: batches may overlap
};

// One batch of synchronous training with one copy of the weights. Passes run
// one at a time on a rank; a hop between ranks occupies nobody.
struct OrderProblem {
  int num_ranks = 1;
  int num_chunks = 1;  // stages per rank
  int num_microbatches = 1;
  // Per stage, in any unit. `overlapped` is not used.
  PassCosts costs = {};
  // Of what a rank holds, in the units of `costs`: an activation from the start
  // of F to the end of I, what W needs from there to the end of W. A whole
  // backward counts as I with its W right behind it.
  double memory_limit = std::numeric_limits<double>::infinity();
  bool can_split = true;  // I and W apart
  // Activations may go to the host and come back, each at most once.
  bool may_offload = false;
  OrderObjective objective = OrderObjective::kMakespan;

  int num_stages() const { return num_ranks * num_chunks; }
  // A whole backward takes less than its halves, or there are no halves.
  bool may_fuse(int stage) const;
};

// What one microbatch holds on a rank of as many stages as each has, at most:
// the unit of a memory limit.
double HeldByMicrobatch(const OrderProblem& problem);

// Everything illegal; else FailedPrecondition for a limit below what one
// microbatch needs, with how much would do. `label` stands before the messages.
absl::Status CheckOrderProblem(absl::string_view label,
                               const OrderProblem& problem);

// The rank of each stage: round and round, and to and fro; one of them where a
// rank has one stage.
std::vector<std::vector<int>> PlacementsOf(const OrderProblem& problem);

// A schedule of the problem without actions, on this placement.
Schedule EmptyOrder(const OrderProblem& problem, std::vector<int> route);

// The most that each rank holds at a time. With offloads by the times of
// TimedWalk, else whatever the times are.
std::vector<double> PeakHeld(const OrderProblem& problem,
                             const Schedule& schedule);
// PeakHeld is nowhere above the limit, rounding aside.
bool FitsLimit(const OrderProblem& problem, const Schedule& schedule);

// TimedWalk's makespan or span. REQUIRES: a valid schedule.
double ObjectiveOf(const OrderProblem& problem, const Schedule& schedule);

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_ORDER_PROBLEM_H_
