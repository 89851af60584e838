// SPDX-License-Identifier: Apache-2.0
// The schedule that a "weir schedule" command is asked about.
#ifndef WEIR_CLI_SCHEDULE_INPUT_H_
#define WEIR_CLI_SCHEDULE_INPUT_H_

#include "absl/status/statusor.h"
#include "cli/flags.h"
#include "schedules/schedule.h"

namespace weir {

// A file, whose shape must be the one that the flags name, or a registry name
// with the shape of the flags: 4 ranks, 8 microbatches and the chunks that it
// needs unless given. Not validated when it is generated.
absl::StatusOr<Schedule> ScheduleOfFlags(const Flags& flags);

// InvalidArgument when the flags name a shape that is not the file's.
absl::Status CheckShapeOfFlags(const Flags& flags, const Schedule& schedule);

}  // namespace weir

#endif  // WEIR_CLI_SCHEDULE_INPUT_H_
