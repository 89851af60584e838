// SPDX-License-Identifier: Apache-2.0
// Rules of validation for single actions: on which rank an action may be, after
// which others, and which passes a stage needs.
#ifndef WEIR_SCHEDULES_ACTION_RULES_H_
#define WEIR_SCHEDULES_ACTION_RULES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "schedules/action.h"
#include "schedules/schedule.h"

namespace weir::schedules {

// Returns the bit of a pass in a set of the passes that one stage and
// microbatch has seen.
inline uint8_t BitOf(Op op) {
  return static_cast<uint8_t>(1U << static_cast<int>(op));
}

// Returns the reason why an action cannot be on a rank, or "".
std::string PlaceProblem(const Schedule& schedule, int rank,
                         const Action& action);

// Returns the reason why an action cannot follow those seen before it, or "".
absl::string_view OrderProblem(Op op, uint8_t seen);

// Returns the reason why an action cannot overlap the one after it, or "".
absl::string_view PairProblem(const std::vector<Action>& actions,
                              size_t position);

// Returns what is missing for a stage and microbatch, such as "F and B", or "".
std::string MissingPasses(uint8_t seen, bool forward_only);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_ACTION_RULES_H_
