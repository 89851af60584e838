// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/envelope.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/version.h"

namespace weir::cli {

using Json = nlohmann::ordered_json;

std::string Envelope(absl::string_view command, absl::string_view config,
                     absl::string_view result,
                     const std::vector<std::string>& warnings) {
  const Json envelope = {{"tool", "weir"},
                         {"version", std::string(WeirVersion())},
                         {"command", std::string(command)},
                         {"config", Json::parse(config)},
                         {"result", Json::parse(result)},
                         {"warnings", warnings}};
  return DumpJson(envelope, 2) + "\n";
}

std::string ScheduleEnvelope(absl::string_view command,
                             absl::string_view schedule_argument,
                             const schedules::Schedule& schedule,
                             absl::string_view result) {
  const Json config = {{"schedule", std::string(schedule_argument)},
                       {"pipeline", schedule.num_ranks},
                       {"num_stages", schedule.num_stages},
                       {"num_microbatches", schedule.num_microbatches},
                       {"num_batches", schedule.num_batches}};
  return Envelope(command, DumpJson(config), result);
}

}  // namespace weir::cli
