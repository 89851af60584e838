// SPDX-License-Identifier: Apache-2.0
// The schedule that a "weir schedule" command is about.
#ifndef WEIR_CLI_SCHEDULE_INPUT_H_
#define WEIR_CLI_SCHEDULE_INPUT_H_

#include "absl/status/statusor.h"
#include "base/size_limits.h"
#include "cli/flags.h"
#include "schedules/schedule.h"
#include "schedules/source.h"

namespace weir {

// A file, whose shape must be the one that the flags name, or a registry name
// with its options in the shape that the flags give or the usual one: 4 ranks,
// 8 microbatches (or as many as the kind takes), and where nothing flushes 3
// batches. Not validated: `weir schedule lint` says what is wrong with it.
// InvalidArgument, before it is made, where what the caller does with each
// action takes more than there is.
absl::StatusOr<Schedule> ScheduleOfFlags(
    const Flags& flags, FileTransfers transfers = FileTransfers::kChecked,
    const SizeEstimate& per_action = {});

// ScheduleOfFlags, validated.
absl::StatusOr<Schedule> ValidScheduleOfFlags(const Flags& flags);

// InvalidArgument when the flags name a shape that is not the file's.
absl::Status CheckShapeOfFlags(const Flags& flags, const Schedule& schedule);

}  // namespace weir

#endif  // WEIR_CLI_SCHEDULE_INPUT_H_
