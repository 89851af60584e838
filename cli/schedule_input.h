// SPDX-License-Identifier: Apache-2.0
// The schedule that a "weir schedule" command is about.
#ifndef WEIR_CLI_SCHEDULE_INPUT_H_
#define WEIR_CLI_SCHEDULE_INPUT_H_

#include "absl/status/statusor.h"
#include "cli/flags.h"
#include "schedules/schedule.h"

namespace weir {

// The valid schedule that flags.name names, with its options, in the shape that
// the flags give or the usual one: 4 ranks, 8 microbatches, and where nothing
// flushes 3 batches.
absl::StatusOr<Schedule> ScheduleFromFlags(const Flags& flags);

}  // namespace weir

#endif  // WEIR_CLI_SCHEDULE_INPUT_H_
