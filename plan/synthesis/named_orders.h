// SPDX-License-Identifier: Apache-2.0
// What the named systems make of a problem.
#ifndef WEIR_PLAN_SYNTHESIS_NAMED_ORDERS_H_
#define WEIR_PLAN_SYNTHESIS_NAMED_ORDERS_H_

#include <string>
#include <vector>

#include "plan/synthesis/order_problem.h"

namespace weir {

struct NamedOrder {
  std::string name;  // "zb-1p:memory-limit=3"
  Schedule schedule;
  double value = 0;  // of the objective
  double peak = 0;   // held on the worst rank
  bool fits = false;
};

// Every synchronous kind that takes the shape and has one copy of the weights,
// also with the problem's memory limit where it has such an option; those that
// fit first, then by value, then in the registry's order. Equal orders stand
// for themselves. Left out: what does several microbatches in one piece,
// compresses what it sends, or splits backwards that cannot be split.
std::vector<NamedOrder> NamedOrders(const OrderProblem& problem);

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_NAMED_ORDERS_H_
