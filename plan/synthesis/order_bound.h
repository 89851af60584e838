// SPDX-License-Identifier: Apache-2.0
// What no order of a problem can beat.
#ifndef WEIR_PLAN_SYNTHESIS_ORDER_BOUND_H_
#define WEIR_PLAN_SYNTHESIS_ORDER_BOUND_H_

#include <limits>
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
//    gradient, the whole way there and back, and only so many fit at a time;
//  - where it has one stage: the best order of its passes when the others are
//    as fast as they can ever be (RankAlone).
// Of the span: the same on one rank, without what happens on others before and
// after. With offloads of what the limit says only the residence is left: as
// many on the host as the channel can carry in that time. `enough`: an order so
// short is known, and nothing above need be shown.
OrderBound LowerBoundOf(
    const PassTable& table,
    double enough = std::numeric_limits<double>::infinity());

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_ORDER_BOUND_H_
