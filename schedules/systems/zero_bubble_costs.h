// SPDX-License-Identifier: Apache-2.0
// What the automatic Zero Bubble orders take from a spec beyond the shape.
#ifndef WEIR_SCHEDULES_SYSTEMS_ZERO_BUBBLE_COSTS_H_
#define WEIR_SCHEDULES_SYSTEMS_ZERO_BUBBLE_COSTS_H_

#include "base/problems.h"
#include "schedules/schedule.h"

namespace weir {

inline constexpr absl::string_view kMemoryLimit = "memory-limit";
inline constexpr absl::string_view kMemoryLimitSummary =
    "activations a rank may hold, in microbatches of the largest stage";

// Notes a problem unless a rank holds two stages, the legs of a V.
void CheckTwoChunks(const ScheduleSpec& spec, Problems* problems);

// Notes a problem unless there are costs for every stage, for one or for none,
// all finite and at least 0.
void CheckCosts(const ScheduleSpec& spec, Problems* problems);

// The option memory-limit, `standard` unless given; notes a problem for one
// below `lowest`.
double MemoryLimit(const ScheduleSpec& spec, double standard, double lowest,
                   Problems* problems);

}  // namespace weir

#endif  // WEIR_SCHEDULES_SYSTEMS_ZERO_BUBBLE_COSTS_H_
