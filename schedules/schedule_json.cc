// SPDX-License-Identifier: Apache-2.0
#include "schedules/schedule_json.h"

#include <nlohmann/json.hpp>

namespace weir {
namespace {

using Json = nlohmann::ordered_json;

Json RanksJson(const Schedule& schedule) {
  Json ranks = Json::array();
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    Json actions = Json::array();
    for (const Action& action : schedule.rank_actions[rank]) {
      actions.push_back(ToString(action));
    }
    ranks.push_back({{"rank", rank}, {"actions", std::move(actions)}});
  }
  return ranks;
}

Json VersionsJson(const Semantics& semantics) {
  Json versions = Json::array();
  for (size_t stage = 0; stage < semantics.uses.size(); ++stage) {
    for (size_t k = 0; k < semantics.uses[stage].size(); ++k) {
      const VersionUse& use = semantics.uses[stage][k];
      versions.push_back({{"stage", stage},
                          {"microbatch", k},
                          {"forward_version", use.forward_version},
                          {"backward_version", use.backward_version},
                          {"update", use.update},
                          {"staleness", use.staleness()}});
    }
  }
  return versions;
}

}  // namespace

std::string ScheduleJson(const Schedule& schedule, const Semantics& semantics) {
  const Json json = {
      {"schedule", schedule.name},
      {"num_ranks", schedule.num_ranks},
      {"num_stages", schedule.num_stages},
      {"num_microbatches", schedule.num_microbatches},
      {"num_batches", schedule.num_batches},
      {"flush", schedule.flush},
      {"routes", schedule.routes},
      {"microbatches_per_route_turn", schedule.microbatches_per_route_turn},
      {"ranks", RanksJson(schedule)},
      {"versions", VersionsJson(semantics)},
      {"max_live_versions", semantics.max_live_versions},
      {"max_staleness", semantics.max_staleness},
      {"verdict", Verdict(schedule, semantics)}};
  constexpr int kIndent = 2;
  // A name may come from a file name: bytes that are not UTF-8 are replaced.
  return json.dump(kIndent, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

}  // namespace weir
