// SPDX-License-Identifier: Apache-2.0
#include "cli/envelope.h"

#include <nlohmann/json.hpp>

#include "base/version.h"

namespace weir {

using Json = nlohmann::ordered_json;

std::string ScheduleEnvelope(absl::string_view command,
                             absl::string_view schedule_argument,
                             const Schedule& schedule,
                             absl::string_view result) {
  const Json envelope = {{"tool", "weir"},
                         {"version", std::string(WeirVersion())},
                         {"command", std::string(command)},
                         {"config",
                          {{"schedule", std::string(schedule_argument)},
                           {"pipeline", schedule.num_ranks},
                           {"num_stages", schedule.num_stages},
                           {"num_microbatches", schedule.num_microbatches},
                           {"num_batches", schedule.num_batches}}},
                         {"result", Json::parse(result)},
                         {"warnings", Json::array()}};
  return envelope.dump(2, ' ', /*ensure_ascii=*/false,
                       Json::error_handler_t::replace) +
         "\n";
}

}  // namespace weir
