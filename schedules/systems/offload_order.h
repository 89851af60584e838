// SPDX-License-Identifier: Apache-2.0
// A greedy order of forwards, backwards, offloads and reloads under a memory
// limit, with one stage per rank: the warm start of OptPipe (Li et al., 2025,
// "AdaOffload"). A policy makes the choices that it leaves open.
#ifndef WEIR_SCHEDULES_SYSTEMS_OFFLOAD_ORDER_H_
#define WEIR_SCHEDULES_SYSTEMS_OFFLOAD_ORDER_H_

#include <compare>
#include <cstdint>
#include <limits>
#include <vector>

#include "schedules/schedule.h"

namespace weir::schedules {

// Choices of the greedy algorithm.
struct OffloadPolicy {
  // Use I and W instead of B.
  bool split = false;
  // Microbatches in flight on a stage: 0 means 1F1B's p-s, 1 means as many as
  // keep the stage busy until the first gradient arrives.
  double warmup = 0;
  // Number of a stage's last weight gradients that are deferred until after its
  // last input gradient, relative to the number that fits into the remaining
  // time. Earlier weight gradients immediately follow their input gradients.
  double deferred = 0;
  // Prefer a forward if both a forward and a backward can run.
  bool forward_first = false;
  // Put no weight gradient into a gap that is shorter than it.
  bool only_whole_gaps = false;
  // Slots of the limit reserved for weight gradient inputs.
  int reserved = 0;
  // Slots of an offloading rank reserved for activations on their way to or
  // from the host. 0: never offload.
  int transit = 0;
  // A reload may start when its backward is less than this many microbatches
  // away. 0: only when the stage takes no more forwards or the gradient
  // arrives.
  int lookahead = 0;
  // Distribute offloads evenly over time instead of one after another.
  bool spread = false;
};

// Times of TimedWalk at the spec's costs.
struct Speed {
  double makespan = std::numeric_limits<double>::infinity();
  double span = 0;
  int64_t num_offloads = 0;

  auto operator<=>(const Speed&) const = default;  // smaller is better
};

struct OffloadOrder {
  std::vector<std::vector<Action>> rank_actions;
  int resident_activations = 0;  // see Schedule
  Speed speed;
};

// Returns the maximum memory that a microbatch occupies on any rank: the unit
// of memory limits.
double LargestHeld(const ScheduleSpec& spec);

// Returns an order in which every rank stores at most limit * LargestHeld(spec)
// of activations and weight gradient inputs, for all times: forwards and
// reloads wait for the offloads that free memory. Requires: one chunk, one
// batch; limit >= 1; costs are finite and >= 0.
OffloadOrder OrderWithOffload(const ScheduleSpec& spec, double limit,
                              const OffloadPolicy& policy);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_SYSTEMS_OFFLOAD_ORDER_H_
