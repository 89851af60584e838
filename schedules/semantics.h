// SPDX-License-Identifier: Apache-2.0
// What a schedule does to the weights, derived from its program order and its
// weight policy alone.
#ifndef WEIR_SCHEDULES_SEMANTICS_H_
#define WEIR_SCHEDULES_SEMANTICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schedules/schedule.h"

namespace weir {

// The versions that one microbatch meets in one stage. F reads
// forward_version; B, or I of a split backward, reads backward_version. W reads
// no weights: it multiplies the stashed input with the gradient that I left.
struct VersionUse {
  int32_t forward_version = 0;
  int32_t backward_version = 0;
  // Its gradient turns version update into update + 1. 0 in inference.
  int32_t update = 0;

  // Updates between the weights the gradient is taken at (the forward's) and
  // the weights it is applied to.
  int staleness() const { return update - forward_version; }
  // Updates between the weights of the forward and of the backward.
  int disagreement() const { return backward_version - forward_version; }
};

struct Semantics {
  // [stage][microbatch]
  std::vector<std::vector<VersionUse>> uses;
  // [rank][position]: versions of the action's stage that its rank holds while
  // the action runs: the newest, and every older one still to be read.
  std::vector<std::vector<int32_t>> live_versions;
  // [stage]: maximum of live_versions, and of staleness over the microbatches.
  std::vector<int> max_live_versions;
  std::vector<int> max_staleness;

  // [rank]: positions after which the update of the action's stage happens
  // (the action is the last backward of an update group), ascending. Where the
  // action overlaps another, the other reads what was there before.
  std::vector<std::vector<int32_t>> update_positions;
};

// Interprets a valid schedule; a stage on several ranks is followed on each of
// them, and a replica counts its own gradients. FailedPrecondition when
//  - a forward would read a version that its stage has not produced yet;
//  - updates would not happen in order;
//  - one backward spans microbatches of two updates;
//  - a replica has gradients for some updates but not for all;
//  - vertical sync joins stages that update at different times.
// A last group with fewer microbatches than an update takes is never applied.
absl::StatusOr<Semantics> InterpretSchedule(const Schedule& schedule);

// One line in the papers' terms, e.g. "equal to minibatch SGD",
// "delay 1, constant: W(t+1) = W(t) - v grad f(W(t-1))",
// "stage-dependent delay p-1-s".
std::string Verdict(const Schedule& schedule, const Semantics& semantics);

// What one update does, e.g. "W(t+1) = W(t) - v grad f(W(t-1))"; W_s where the
// stages differ, and f(forward; backward) where the passes do.
std::string UpdateRule(const Schedule& schedule, const Semantics& semantics);

}  // namespace weir

#endif  // WEIR_SCHEDULES_SEMANTICS_H_
