// SPDX-License-Identifier: Apache-2.0
// The envelope that all JSON output of weir shares: tool, version, command,
// config, result, warnings. `weir schedule show --format json` does not use it:
// it prints a file format that can be read again
// (schedules/interop/schedule_json.h).
#ifndef WEIR_CLI_WEIR_ENVELOPE_H_
#define WEIR_CLI_WEIR_ENVELOPE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "schedules/schedule.h"

namespace weir::cli {

// Returns text that ends with a newline. `config` and `result` are JSON
// objects.
std::string Envelope(absl::string_view command, absl::string_view config,
                     absl::string_view result,
                     const std::vector<std::string>& warnings = {});

// The same for a command about a schedule. `result` is a JSON object.
std::string ScheduleEnvelope(absl::string_view command,
                             absl::string_view schedule_argument,
                             const schedules::Schedule& schedule,
                             absl::string_view result);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_ENVELOPE_H_
