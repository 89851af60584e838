// SPDX-License-Identifier: Apache-2.0
// The families behind the registry, one source file each.
#ifndef WEIR_SCHEDULES_GENERATORS_H_
#define WEIR_SCHEDULES_GENERATORS_H_

#include <vector>

#include "schedules/registry.h"
#include "schedules/schedule.h"

namespace weir {

ScheduleKind GPipeKind();                  // gpipe.cc
ScheduleKind PipeDreamFlushKind();         // pipedream_flush.cc
ScheduleKind InterleavedKind();            // interleaved.cc
ScheduleKind InterleavedZeroBubbleKind();  // interleaved_zb.cc
ScheduleKind PipeDreamKind();              // pipedream.cc
ScheduleKind PipeDream2BWKind();           // pipedream.cc

// Stage c*num_ranks + r on rank r as its chunk c.
std::vector<int> LoopedRoute(const ScheduleSpec& spec);

// There and back: chunk 0 from rank 0 to the last, chunk 1 from the last to
// rank 0, chunk 2 from rank 0 again. Two chunks make a V.
std::vector<int> ZigZagRoute(const ScheduleSpec& spec);

// A schedule with the looped placement of the spec and no actions yet.
Schedule EmptySchedule(absl::string_view name, const ScheduleSpec& spec);

// Orders one stage: warm-up forwards, then one forward and one backward in
// turn, then the backwards that are left.
std::vector<Action> OneFOneB(int stage, int num_warmup, int num_microbatches);

// A 1F1B of all batches without a pause between them: stage s warms up with
// num_ranks-1-s forwards.
Schedule OneFOneBSchedule(absl::string_view name, const ScheduleSpec& spec);

}  // namespace weir

#endif  // WEIR_SCHEDULES_GENERATORS_H_
