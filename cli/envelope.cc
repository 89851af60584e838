// SPDX-License-Identifier: Apache-2.0
#include "cli/envelope.h"

#include <nlohmann/json.hpp>

#include "base/version.h"

namespace weir {

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
  return envelope.dump(2, ' ', /*ensure_ascii=*/false,
                       Json::error_handler_t::replace) +
         "\n";
}

std::string ScheduleEnvelope(absl::string_view command,
                             absl::string_view schedule_argument,
                             const Schedule& schedule,
                             absl::string_view result) {
  const Json config = {{"schedule", std::string(schedule_argument)},
                       {"pipeline", schedule.num_ranks},
                       {"num_stages", schedule.num_stages},
                       {"num_microbatches", schedule.num_microbatches},
                       {"num_batches", schedule.num_batches}};
  return Envelope(command,
                  config.dump(-1, ' ', /*ensure_ascii=*/false,
                              Json::error_handler_t::replace),
                  result);
}

}  // namespace weir
