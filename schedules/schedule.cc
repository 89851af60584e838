// SPDX-License-Identifier: Apache-2.0
#include "schedules/schedule.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "schedules/stages_by_rank.h"

namespace weir::schedules {

std::vector<int> Schedule::RanksOf(int stage) const {
  // Replicated stages can have thousands of routes.
  constexpr size_t kFewRoutes = 16;
  std::vector<int> ranks;
  absl::flat_hash_set<int> listed;
  for (const std::vector<int>& route : routes) {
    const int rank = route[stage];
    const bool is_new =
        routes.size() > kFewRoutes
            ? listed.insert(rank).second
            : std::find(ranks.begin(), ranks.end(), rank) == ranks.end();
    if (is_new) ranks.push_back(rank);
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

std::vector<std::vector<int>> StagesByRank(const Schedule& schedule) {
  std::vector<std::vector<int>> stages(schedule.num_ranks);
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    for (const std::vector<int>& route : schedule.routes) {
      std::vector<int>& own = stages[route[stage]];
      if (own.empty() || own.back() != stage) own.push_back(stage);
    }
  }
  return stages;
}

uint64_t OrderHash(const Schedule& schedule) {
  // Names every field, so that a new one does not compile until it is here.
  const auto& [name, num_ranks, num_stages, num_microbatches, num_batches,
               flush, forward_only, routes, microbatches_per_route_turn,
               rank_actions, weights, resident_activations,
               compressed_transfers] = schedule;
  return absl::HashOf(num_ranks, num_stages, num_microbatches, num_batches,
                      flush, forward_only, routes, microbatches_per_route_turn,
                      rank_actions, weights, resident_activations,
                      compressed_transfers);
}

}  // namespace weir::schedules
