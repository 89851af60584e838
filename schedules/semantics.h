// SPDX-License-Identifier: Apache-2.0
// Interprets the effect of a schedule on the weights, from its order of actions
// and its weight policy.
#ifndef WEIR_SCHEDULES_SEMANTICS_H_
#define WEIR_SCHEDULES_SEMANTICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schedules/schedule.h"

namespace weir::schedules {

// The versions that a microbatch uses in a stage. F reads forward_version; B,
// or the I of a split backward, reads backward_version. W reads no weights: it
// multiplies the stashed input by the gradient from I.
struct VersionUse {
  int32_t forward_version = 0;
  int32_t backward_version = 0;
  // Its gradient turns version `update` into `update` + 1. 0 for inference.
  int32_t update = 0;

  // Returns the number of updates between the weights with which the gradient
  // is computed (the forward's) and the weights to which it is applied.
  int staleness() const { return update - forward_version; }
  // Returns the number of updates between the weights of the forward and those
  // of the backward.
  int disagreement() const { return backward_version - forward_version; }
};

struct Semantics {
  // [stage][microbatch]
  std::vector<std::vector<VersionUse>> uses;
  // [rank][position]: number of versions of the action's stage that its rank
  // stores while the action runs: the newest, and older ones still to be read.
  std::vector<std::vector<int32_t>> live_versions;
  // [stage]: maximum of live_versions, and of staleness over the microbatches.
  std::vector<int> max_live_versions;
  std::vector<int> max_staleness;

  // [rank]: ascending positions after which the action's stage is updated (the
  // action is the last backward of an update group). An action that overlaps it
  // reads the weights from before the update.
  std::vector<std::vector<int32_t>> update_positions;
};

// Interprets a valid schedule. A stage on several ranks is interpreted on each
// of them, and each replica counts its own gradients. Returns
// FailedPrecondition if
//
//   - a forward would read a version that its stage has not produced yet;
//   - updates would be out of order;
//   - one backward spans microbatches of two updates;
//   - a replica has gradients for some updates but not for all;
//   - vertical sync is used with stages that update at different times.
//
// A last group with fewer microbatches than an update requires is not applied.
absl::StatusOr<Semantics> InterpretSchedule(const Schedule& schedule);

// The symbols of formulas that describe updates.
inline constexpr char kUpdateSymbols[] =
    "w_s(t): weights of stage s of p after t updates; eta: learning rate; m: "
    "microbatches per batch; tau_s, sigma_s: delays of F and B in updates";

// Returns a line in the papers' terms, such as "equal to minibatch SGD", "delay
// 1, constant: w(t+1) = w(t) - eta grad f(w(t-1))", or "stage-dependent delay
// p-1-s".
std::string Verdict(const Schedule& schedule, const Semantics& semantics);

// Returns the effect of one update, such as "w(t+1) = w(t) - eta grad
// f(w(t-1))"; w_s if stages differ, and f(forward; backward) if passes differ.
std::string UpdateRule(const Schedule& schedule, const Semantics& semantics);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_SEMANTICS_H_
