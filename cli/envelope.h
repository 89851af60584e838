// SPDX-License-Identifier: Apache-2.0
// The frame that all JSON answers of weir share: tool, version, command,
// config, result, warnings. `weir schedule show --format json` has none: it
// prints a file format, which is read again (schedules/schedule_json.h).
#ifndef WEIR_CLI_ENVELOPE_H_
#define WEIR_CLI_ENVELOPE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "schedules/schedule.h"

namespace weir {

// `config` and `result` are JSON objects. Ends with a newline.
std::string Envelope(absl::string_view command, absl::string_view config,
                     absl::string_view result,
                     const std::vector<std::string>& warnings = {});

// About a schedule; `result` is a JSON object. Ends with a newline.
std::string ScheduleEnvelope(absl::string_view command,
                             absl::string_view schedule_argument,
                             const Schedule& schedule,
                             absl::string_view result);

}  // namespace weir

#endif  // WEIR_CLI_ENVELOPE_H_
