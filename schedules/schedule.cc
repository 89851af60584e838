// SPDX-License-Identifier: Apache-2.0
#include "schedules/schedule.h"

#include <algorithm>

namespace weir {

std::vector<int> Schedule::RanksOf(int stage) const {
  std::vector<int> ranks;
  for (const std::vector<int>& route : routes) {
    if (std::find(ranks.begin(), ranks.end(), route[stage]) == ranks.end()) {
      ranks.push_back(route[stage]);
    }
  }
  return ranks;
}

std::vector<int> Schedule::StagesOf(int rank) const {
  std::vector<int> stages;
  for (int stage = 0; stage < num_stages; ++stage) {
    const bool holds =
        std::any_of(routes.begin(), routes.end(),
                    [&](const auto& route) { return route[stage] == rank; });
    if (holds) stages.push_back(stage);
  }
  return stages;
}

int Schedule::microbatches_per_update(int stage) const {
  return weights.microbatches_per_update *
         (weights.times_replicas ? static_cast<int>(RanksOf(stage).size()) : 1);
}

}  // namespace weir
