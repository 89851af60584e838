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

// The versions that one microbatch meets in one stage.
struct VersionUse {
  int32_t forward_version = 0;
  int32_t backward_version = 0;
  int32_t update = 0;  // its gradient turns version update into update + 1

  // Updates between the weights the gradient is taken at (the forward's) and
  // the weights it is applied to.
  int staleness() const { return update - forward_version; }
};

struct Semantics {
  // [stage][microbatch]
  std::vector<std::vector<VersionUse>> uses;
  // [rank][position]: versions of the action's stage that are held while the
  // action runs: the newest, and every older or newer one still to be read.
  std::vector<std::vector<int32_t>> live_versions;
  // [stage]: maximum of live_versions, and of staleness over the microbatches.
  std::vector<int> max_live_versions;
  std::vector<int> max_staleness;

  // [rank]: positions after which the update of the action's stage happens
  // (the action is the last backward of an update group), ascending.
  std::vector<std::vector<int32_t>> update_positions;
};

// Interprets a valid schedule. FailedPrecondition when a forward would read a
// version that its stage has not produced yet, or updates would not happen in
// order. Forwards, B and I read weights; W needs only what I left. A last group
// with fewer microbatches than an update takes is never applied.
absl::StatusOr<Semantics> InterpretSchedule(const Schedule& schedule);

// One line in the papers' terms, e.g. "equal to minibatch SGD",
// "delay 1, constant: W(t+1) = W(t) - v grad f(W(t-1))",
// "stage-dependent delay p-1-s".
std::string Verdict(const Schedule& schedule, const Semantics& semantics);

}  // namespace weir

#endif  // WEIR_SCHEDULES_SEMANTICS_H_
