// SPDX-License-Identifier: Apache-2.0
// A greedy order of forwards, backwards, offloads and reloads under a memory
// limit, one stage per rank: the warm start of OptPipe (Li et al., 2025,
// "AdaOffload") with the choices that it leaves open as a policy.
#ifndef WEIR_SCHEDULES_SYSTEMS_OFFLOAD_ORDER_H_
#define WEIR_SCHEDULES_SYSTEMS_OFFLOAD_ORDER_H_

#include <compare>
#include <cstdint>
#include <limits>
#include <vector>

#include "schedules/schedule.h"

namespace weir {

// What the greedy does where the problem leaves a choice.
struct OffloadPolicy {
  // I and W apart; otherwise B.
  bool split = false;
  // Microbatches in flight on a stage: 0 is 1F1B's p-s, 1 as many as keep the
  // stage busy until the first gradient comes back.
  double warmup = 0;
  // Of the last weight gradients of a stage, how many wait until its last input
  // gradient is on its way: 1 is as many as fit into that time, 0 none. Those
  // before run right after their input gradient.
  double deferred = 0;
  // A forward before a backward where both can run.
  bool forward_first = false;
  // No weight gradient in a gap that is shorter than it.
  bool only_whole_gaps = false;
  // Slots of the limit that no activation takes, for weight-gradient inputs.
  int reserved = 0;
  // Slots of an offloading rank that only activations on their way to or from
  // the host take. 0: never offload.
  int transit = 0;
  // A reload may start when the next backward is at most so many microbatches
  // away; at 0 only when the stage takes no more forwards or the gradient
  // comes.
  int lookahead = 0;
  // Offloads evenly over time, not one after the other.
  bool spread = false;
};

// As TimedWalk finds them at the spec's costs.
struct Speed {
  double makespan = std::numeric_limits<double>::infinity();
  double span = 0;
  int64_t num_offloads = 0;

  auto operator<=>(const Speed&) const = default;  // less is better
};

struct OffloadOrder {
  std::vector<std::vector<Action>> rank_actions;
  int resident_activations = 0;  // see Schedule
  Speed speed;
};

// What one microbatch holds at most on any rank: the unit of a memory limit.
double LargestHeld(const ScheduleSpec& spec);

// Every rank holds at most limit * LargestHeld(spec), activations and what
// weight gradients still need, whatever the times turn out to be: a forward or
// a reload waits for the offloads that make room.
// REQUIRES: one chunk, one batch; limit >= 1; costs are finite and >= 0.
OffloadOrder OrderWithOffload(const ScheduleSpec& spec, double limit,
                              const OffloadPolicy& policy);

}  // namespace weir

#endif  // WEIR_SCHEDULES_SYSTEMS_OFFLOAD_ORDER_H_
