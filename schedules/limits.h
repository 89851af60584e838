// SPDX-License-Identifier: Apache-2.0
// Limits of schedules, and checks shared by all kinds.
#ifndef WEIR_SCHEDULES_LIMITS_H_
#define WEIR_SCHEDULES_LIMITS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "schedules/schedule.h"

namespace weir::schedules {

inline constexpr int kMaxRanks = 100'000;
inline constexpr int64_t kMaxActions = 400'000'000;

// Reports all problems of `spec` that are independent of the kind: counts below
// 1, too many ranks, too many actions. Uses the field names that users type:
// pipeline, chunks, num_microbatches, num_batches. `num_passes` is the number
// of actions per microbatch and stage, 3 if the backward is split.
void CheckLimits(const ScheduleSpec& spec, Problems* problems,
                 int num_passes = 2);

// Adds a problem unless every rank has one stage.
void CheckOneChunk(const ScheduleSpec& spec, Problems* problems);

// Adds a problem unless every rank has an even number of stages.
void CheckEvenChunks(const ScheduleSpec& spec, Problems* problems);

// Adds a problem unless there is one batch, as every flush requires.
void CheckOneBatch(const ScheduleSpec& spec, Problems* problems);

// Returns the problems of a spec for a kind without flush and with one stage
// per rank.
Problems CheckWithoutFlush(absl::string_view name, const ScheduleSpec& spec);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_LIMITS_H_
