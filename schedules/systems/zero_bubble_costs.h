// SPDX-License-Identifier: Apache-2.0
// Options and costs of the automatic Zero Bubble orders.
#ifndef WEIR_SCHEDULES_SYSTEMS_ZERO_BUBBLE_COSTS_H_
#define WEIR_SCHEDULES_SYSTEMS_ZERO_BUBBLE_COSTS_H_

#include "base/problems.h"
#include "schedules/schedule.h"

namespace weir::schedules {

inline constexpr absl::string_view kMemoryLimit = "memory-limit";
inline constexpr absl::string_view kMemoryLimitSummary =
    "maximum activations that a rank holds, in microbatches of the largest "
    "stage";

// Adds a problem unless every rank has two stages, one on each side of a V.
void CheckTwoChunks(const ScheduleSpec& spec, Problems* problems);

// Adds a problem unless there are costs for every stage, for one or for none,
// all finite and at least 0.
void CheckCosts(const ScheduleSpec& spec, Problems* problems);

// Returns the option memory-limit, by default `standard`. Adds a problem if it
// is below `lowest`.
double MemoryLimit(const ScheduleSpec& spec, double standard, double lowest,
                   Problems* problems);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_SYSTEMS_ZERO_BUBBLE_COSTS_H_
