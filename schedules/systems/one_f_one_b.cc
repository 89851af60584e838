// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "schedules/systems/generators.h"

namespace weir::schedules {

std::vector<int> LoopedRoute(const ScheduleSpec& spec) {
  std::vector<int> route(size_t{1} * spec.num_ranks * spec.num_chunks);
  for (size_t stage = 0; stage < route.size(); ++stage) {
    route[stage] = static_cast<int>(stage) % spec.num_ranks;
  }
  return route;
}

std::vector<int> ZigZagRoute(const ScheduleSpec& spec) {
  std::vector<int> route = LoopedRoute(spec);
  for (size_t stage = 0; stage < route.size(); ++stage) {
    const bool returns = stage / spec.num_ranks % 2 == 1;
    if (returns) route[stage] = spec.num_ranks - 1 - route[stage];
  }
  return route;
}

Schedule EmptySchedule(absl::string_view name, const ScheduleSpec& spec) {
  Schedule schedule;
  schedule.name = std::string(name);
  schedule.num_ranks = spec.num_ranks;
  schedule.num_stages = spec.num_ranks * spec.num_chunks;
  schedule.num_microbatches = spec.num_microbatches;
  schedule.num_batches = spec.num_batches;
  schedule.weights.microbatches_per_update = spec.num_microbatches;
  schedule.routes.assign(1, LoopedRoute(spec));
  schedule.rank_actions.resize(spec.num_ranks);
  return schedule;
}

std::vector<Action> OneFOneB(int stage, int num_warmup, int num_microbatches) {
  std::vector<Action> actions;
  actions.reserve(2 * static_cast<size_t>(num_microbatches));
  int forward = 0;
  int backward = 0;
  const int warmup = std::min(num_warmup, num_microbatches);
  while (forward < warmup) {
    actions.push_back({Op::kForward, stage, forward++});
  }
  while (forward < num_microbatches) {
    actions.push_back({Op::kForward, stage, forward++});
    actions.push_back({Op::kBackward, stage, backward++});
  }
  while (backward < num_microbatches) {
    actions.push_back({Op::kBackward, stage, backward++});
  }
  return actions;
}

Schedule OneFOneBSchedule(absl::string_view name, const ScheduleSpec& spec,
                          const std::function<int(int stage)>& warmup) {
  Schedule schedule = EmptySchedule(name, spec);
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    schedule.rank_actions[rank] =
        OneFOneB(rank, warmup(rank), schedule.total_microbatches());
  }
  return schedule;
}

Schedule OneFOneBSchedule(absl::string_view name, const ScheduleSpec& spec) {
  return OneFOneBSchedule(
      name, spec, [&](int stage) { return spec.num_ranks - 1 - stage; });
}

}  // namespace weir::schedules
