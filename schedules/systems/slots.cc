// SPDX-License-Identifier: Apache-2.0
#include "schedules/systems/slots.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace weir::schedules {
namespace {

struct SlottedAction {
  int64_t slot;
  Action action;
};

// Returns the microbatches of every route, ascending.
std::vector<std::vector<int>> MicrobatchesOfRoutes(const Schedule& schedule) {
  std::vector<std::vector<int>> of_routes(schedule.num_routes());
  for (int k = 0; k < schedule.total_microbatches(); ++k) {
    of_routes[schedule.route_of(k)].push_back(k);
  }
  return of_routes;
}

// A unit of a route, whose `microbatches` enter from slot `first_slot` on.
class UnitOfRoute {
 public:
  UnitOfRoute(const SlotUnit& unit, int64_t first_slot, const int* microbatches,
              int num_microbatches, std::vector<std::vector<SlottedAction>>* to)
      : num_forwards_(unit.num_forwards),
        span_(num_microbatches <= unit.num_forwards ? 1 : unit.forward_span),
        first_slot_(first_slot),
        microbatches_(microbatches),
        num_microbatches_(num_microbatches),
        to_(to) {}

  void Place(const std::vector<int>& route) const {
    const int num_stages = static_cast<int>(route.size());
    for (int stage = 0; stage < num_stages; ++stage) {
      std::vector<SlottedAction>& rank = (*to_)[route[stage]];
      for (int i = 0; i < num_microbatches_; i += span_) {
        const int span = std::min(span_, num_microbatches_ - i);
        rank.push_back({first_slot_ + stage + 2 * int64_t{i / span_},
                        {Op::kForward, stage, microbatches_[i],
                         static_cast<uint16_t>(span)}});
      }
      const int64_t returned =
          first_slot_ + 2 * int64_t{num_stages} - 1 - stage;
      for (int i = 0; i < num_microbatches_; ++i) {
        rank.push_back({returned + 2 * int64_t{i % num_forwards_} +
                            int64_t{num_stages} * (i / num_forwards_),
                        {Op::kBackward, stage, microbatches_[i]}});
      }
    }
  }

 private:
  int num_forwards_;
  int span_;
  int64_t first_slot_;
  const int* microbatches_;
  int num_microbatches_;
  std::vector<std::vector<SlottedAction>>* to_;
};

}  // namespace

void OrderBySlots(const SlotUnit& unit, Schedule* schedule) {
  std::vector<std::vector<SlottedAction>> ranks(schedule->num_ranks);
  const int per_unit = unit.num_forwards * unit.forward_span;
  const int64_t unit_slots =
      int64_t{1 + unit.forward_span} * schedule->num_stages;
  const auto of_routes = MicrobatchesOfRoutes(*schedule);
  for (int route = 0; route < schedule->num_routes(); ++route) {
    const std::vector<int>& microbatches = of_routes[route];
    const int total = static_cast<int>(microbatches.size());
    for (int first = 0; first < total; first += per_unit) {
      const UnitOfRoute placed(unit, first / per_unit * unit_slots,
                               microbatches.data() + first,
                               std::min(per_unit, total - first), &ranks);
      placed.Place(schedule->routes[route]);
    }
  }
  for (int rank = 0; rank < schedule->num_ranks; ++rank) {
    std::sort(ranks[rank].begin(), ranks[rank].end(),
              [](const SlottedAction& a, const SlottedAction& b) {
                return a.slot < b.slot;
              });
    std::vector<Action>& actions = schedule->rank_actions[rank];
    actions.reserve(ranks[rank].size());
    for (const SlottedAction& slotted : ranks[rank]) {
      actions.push_back(slotted.action);
    }
  }
}

std::vector<int> Reversed(std::vector<int> route) {
  std::reverse(route.begin(), route.end());
  return route;
}

}  // namespace weir::schedules
