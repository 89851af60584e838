// SPDX-License-Identifier: Apache-2.0
// Starting points of searches for an order.
#ifndef WEIR_PLAN_SYNTHESIS_STARTING_POINTS_H_
#define WEIR_PLAN_SYNTHESIS_STARTING_POINTS_H_

#include <string>
#include <utility>
#include <vector>

#include "plan/synthesis/named_orders.h"
#include "plan/synthesis/offload_clock.h"
#include "plan/synthesis/order_bound.h"
#include "plan/synthesis/pass_rows.h"

namespace weir::plan {

// A placement with a few distinct orders to start from.
struct StartingPoint {
  PassTable table;
  OrderBound bound;
  std::vector<std::pair<std::string, PassRows>> starts = {};
  std::vector<std::pair<std::string, OffloadRows>> offload_starts = {};
};

// Returns a placement with the best named orders that fit and have this
// placement, and the order of one microbatch at a time. `enough`: see
// LowerBoundOf.
StartingPoint StartingPointOf(const OrderProblem& problem,
                              const std::vector<int>& route,
                              const std::vector<NamedOrder>& named,
                              double enough);

// Add an order if it has this placement and fits, unless it is known or there
// are enough others. AddStart ignores orders with offloads.
void AddStart(const OrderProblem& problem, const std::string& name,
              const schedules::Schedule& schedule,
              StartingPoint* starting_point);
void AddOffloadStart(const OrderProblem& problem, const std::string& name,
                     const schedules::Schedule& schedule,
                     StartingPoint* starting_point);

// Returns true if the schedule offloads any activation.
bool HasOffloads(const schedules::Schedule& schedule);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_STARTING_POINTS_H_
