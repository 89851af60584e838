// SPDX-License-Identifier: Apache-2.0
// What no order of a problem can beat.
#ifndef WEIR_PLAN_SYNTHESIS_ORDER_BOUND_H_
#define WEIR_PLAN_SYNTHESIS_ORDER_BOUND_H_

#include <string>

#include "plan/synthesis/pass_rows.h"

namespace weir {

struct OrderBound {
  double value = 0;
  std::string reason;  // "rank 2: its work after the first forward arrives"
};

// The largest, over the ranks, of
//  - its work, after the first forward can arrive;
//  - its forwards and input gradients, and weight gradients as far as not all
//    of them can wait for the end within the limit, then the way of the last
//    input gradient to the first stage;
//  - fill: until the first gradient can come back only forwards run, no more
//    than the limit holds; then the rest of its work;
//  - fill and drain: likewise after its last forward has begun nothing is left
//    but what the limit holds, while that microbatch still goes to the last
//    stage and back;
//  - residence: every microbatch is held from its forward to its input
//    gradient, the whole way there and back, and only so many fit at a time.
// Of the span: the same on one rank, without what happens on others before and
// after. With offloads what the limit says is left out.
OrderBound LowerBoundOf(const PassTable& table);

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_ORDER_BOUND_H_
