// SPDX-License-Identifier: Apache-2.0
// The orders of the named systems for a problem.
#ifndef WEIR_PLAN_SYNTHESIS_NAMED_ORDERS_H_
#define WEIR_PLAN_SYNTHESIS_NAMED_ORDERS_H_

#include <string>
#include <vector>

#include "plan/synthesis/order_problem.h"

namespace weir::plan {

struct NamedOrder {
  std::string name;  // "zb-1p:memory-limit=3"
  schedules::Schedule schedule;
  double value = 0;  // objective
  double peak = 0;   // most held on any rank
  bool fits = false;
};

// Returns the orders of every synchronous kind that accepts the shape and has
// one copy of the weights, also with the problem's memory limit if the kind has
// that option. Sorted by fitting first, then by value, then by registry. Equal
// orders are all listed. Excludes orders that run several microbatches in one
// pass, compress transfers, or split backwards that cannot be split.
std::vector<NamedOrder> NamedOrders(const OrderProblem& problem);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_NAMED_ORDERS_H_
