// SPDX-License-Identifier: Apache-2.0
// How large a schedule may be, and the checks that all kinds share.
#ifndef WEIR_SCHEDULES_LIMITS_H_
#define WEIR_SCHEDULES_LIMITS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "schedules/schedule.h"

namespace weir {

inline constexpr int kMaxRanks = 100'000;
inline constexpr int64_t kMaxActions = 400'000'000;

// Notes everything about `spec` that is illegal for any kind: counts below 1,
// too many ranks, too many actions. Fields are named as a user types them:
// pipeline, chunks, num_microbatches, num_batches. `num_passes` is how many
// actions a microbatch makes in a stage, 3 where the backward is split.
void CheckLimits(const ScheduleSpec& spec, Problems* problems,
                 int num_passes = 2);

// Notes a problem unless a rank holds one stage.
void CheckOneChunk(const ScheduleSpec& spec, Problems* problems);

// Notes a problem unless a rank holds an even number of stages.
void CheckEvenChunks(const ScheduleSpec& spec, Problems* problems);

// Notes a problem unless there is one batch, as with every flush.
void CheckOneBatch(const ScheduleSpec& spec, Problems* problems);

// The problems of a kind without flush that holds one stage on a rank.
Problems CheckWithoutFlush(absl::string_view name, const ScheduleSpec& spec);

}  // namespace weir

#endif  // WEIR_SCHEDULES_LIMITS_H_
