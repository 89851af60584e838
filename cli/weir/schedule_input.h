// SPDX-License-Identifier: Apache-2.0
// The schedule of a "weir schedule" command.
#ifndef WEIR_CLI_WEIR_SCHEDULE_INPUT_H_
#define WEIR_CLI_WEIR_SCHEDULE_INPUT_H_

#include "absl/status/statusor.h"
#include "base/size_limits.h"
#include "cli/options/flags.h"
#include "schedules/schedule.h"
#include "schedules/source.h"

namespace weir::cli {

// Returns the schedule of a file, whose shape must match the flags, or a
// registered schedule with its options. Its shape is that of the flags or else
// the usual one: 4 ranks, 8 microbatches (or as many as the kind takes), and 3
// batches if it has no flush. Does not validate it: `weir schedule lint`
// reports problems. Returns InvalidArgument, before generating it, if the
// caller's work per action needs more memory or time than there is.
absl::StatusOr<schedules::Schedule> ScheduleOfFlags(
    const Flags& flags,
    schedules::FileTransfers transfers = schedules::FileTransfers::kChecked,
    const SizeEstimate& per_action = {});

// The same as ScheduleOfFlags, validated. Also returns the errors of
// ValidateSchedule.
absl::StatusOr<schedules::Schedule> ValidScheduleOfFlags(const Flags& flags);

// Returns InvalidArgument if the flags specify a shape other than the file's.
absl::Status CheckShapeOfFlags(const Flags& flags,
                               const schedules::Schedule& schedule);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_SCHEDULE_INPUT_H_
