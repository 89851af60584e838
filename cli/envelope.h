// SPDX-License-Identifier: Apache-2.0
// The frame that all JSON of weir shares: tool, version, command, config,
// result, warnings.
#ifndef WEIR_CLI_ENVELOPE_H_
#define WEIR_CLI_ENVELOPE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "schedules/schedule.h"

namespace weir {

// About a schedule; `result` is a JSON object. Ends with a newline.
std::string ScheduleEnvelope(absl::string_view command,
                             absl::string_view schedule_argument,
                             const Schedule& schedule,
                             absl::string_view result);

}  // namespace weir

#endif  // WEIR_CLI_ENVELOPE_H_
