// SPDX-License-Identifier: Apache-2.0
// Order problems: passes with their times and memory, and the memory limit of a
// rank.
#ifndef WEIR_PLAN_SYNTHESIS_ORDER_PROBLEM_H_
#define WEIR_PLAN_SYNTHESIS_ORDER_PROBLEM_H_

#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schedules/schedule.h"

namespace weir::plan {

// Times that differ by less, relative to the makespan, count as equal.
inline constexpr double kRounding = 1e-9;

enum class OrderObjective {
  kMakespan,  // start of the first pass to end of the last
  kSpan,      // the maximum over ranks of the same; batches may overlap
};

// One batch of synchronous training with one copy of the weights. A rank runs
// one pass at a time; a hop between ranks occupies neither.
struct OrderProblem {
  int num_ranks = 1;
  int num_chunks = 1;  // stages per rank
  int num_microbatches = 1;
  // By stage, in any unit. `overlapped` is not used.
  schedules::PassCosts costs = {};
  // The limit of what a rank holds, in the units of `costs`: an activation from
  // the start of F to the end of I, the inputs of W from there to the end of W.
  // A whole backward counts as I directly followed by its W.
  double memory_limit = std::numeric_limits<double>::infinity();
  bool can_split = true;  // I and W may run separately
  // Activations may be offloaded to the host and reloaded, each at most once.
  bool may_offload = false;
  OrderObjective objective = OrderObjective::kMakespan;

  int num_stages() const { return num_ranks * num_chunks; }
  // Returns true if a whole backward takes less than I and W, or cannot be
  // split.
  bool may_fuse(int stage) const;
};

// Returns the most that one microbatch can hold on a rank: num_chunks times the
// largest stage. This is the unit of memory limits.
double HeldByMicrobatch(const OrderProblem& problem);

// Reports all invalid values; else returns FailedPrecondition for a limit below
// the needs of one microbatch, with a sufficient limit. Messages begin with
// `label`.
absl::Status CheckOrderProblem(absl::string_view label,
                               const OrderProblem& problem);

// Returns the placements, each as the rank of each stage: round-robin and
// back-and-forth; only one of them with one stage per rank.
std::vector<std::vector<int>> PlacementsOf(const OrderProblem& problem);

// Returns a schedule of the problem on this placement, without actions.
schedules::Schedule EmptyOrder(const OrderProblem& problem,
                               std::vector<int> route);

// Returns the most that each rank holds at any time; with offloads for the
// times of TimedWalk, else for any times.
std::vector<double> PeakHeld(const OrderProblem& problem,
                             const schedules::Schedule& schedule);
// Returns true if no rank exceeds the limit (PeakHeld), up to rounding.
bool FitsLimit(const OrderProblem& problem,
               const schedules::Schedule& schedule);

// Returns TimedWalk's makespan or span. Requires: the schedule is valid.
double ObjectiveOf(const OrderProblem& problem,
                   const schedules::Schedule& schedule);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_ORDER_PROBLEM_H_
