// SPDX-License-Identifier: Apache-2.0
// Where searches for an order start.
#ifndef WEIR_PLAN_SYNTHESIS_GROUNDS_H_
#define WEIR_PLAN_SYNTHESIS_GROUNDS_H_

#include <string>
#include <utility>
#include <vector>

#include "plan/synthesis/named_orders.h"
#include "plan/synthesis/offload_clock.h"
#include "plan/synthesis/order_bound.h"
#include "plan/synthesis/pass_rows.h"

namespace weir {

// One placement, and the orders to start from, few and different.
struct Ground {
  PassTable table;
  OrderBound bound;
  std::vector<std::pair<std::string, PassRows>> starts = {};
  std::vector<std::pair<std::string, OffloadRows>> offload_starts = {};
};

// Starts from the best of the named orders that fit and stand on this
// placement, and from one microbatch at a time. `enough`: as LowerBoundOf's.
Ground GroundOf(const OrderProblem& problem, const std::vector<int>& route,
                const std::vector<NamedOrder>& named, double enough);

// Adds an order, offloads left out or not, where it stands on this placement,
// fits, and there are not enough others.
void AddStart(const OrderProblem& problem, const std::string& name,
              const Schedule& schedule, Ground* ground);
void AddOffloadStart(const OrderProblem& problem, const std::string& name,
                     const Schedule& schedule, Ground* ground);

// Does anything go to the host?
bool HasOffloads(const Schedule& schedule);

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_GROUNDS_H_
