// SPDX-License-Identifier: Apache-2.0
// Lower bounds of order problems.
#ifndef WEIR_PLAN_SYNTHESIS_ORDER_BOUND_H_
#define WEIR_PLAN_SYNTHESIS_ORDER_BOUND_H_

#include <limits>
#include <string>

#include "plan/synthesis/pass_rows.h"

namespace weir::plan {

struct OrderBound {
  double value = 0;
  std::string reason;  // "rank 2: its work after the first forward arrives"
};

// Returns the maximum over the ranks of
// - its work, after the first forward can arrive;
// - its forwards and input gradients, and the weight gradients that cannot be
//   deferred to the end within the limit, then the path of the last input
//   gradient to the first stage;
// - fill: only forwards run until the first gradient can return, at most as
//   many as the limit holds; then the rest of its work;
// - fill and drain: in addition, after its last forward has begun, only what
//   the limit holds is left to do, while that microbatch still passes to the
//   last stage and back;
// - residence: every microbatch is held from its forward to its input gradient,
//   the whole way there and back, and only a limited number fits at a time;
// - if it has one stage: the best order of its passes with the other ranks as
//   fast as possible (SingleRankProblem).
// For the span, the same on one rank, without what other ranks do before and
// after. With offloads, of the bounds by the limit only residence applies, with
// as many microbatches on the host as the channel can carry in that time.
// `enough`: the value of a known order; larger bounds are not needed.
OrderBound LowerBoundOf(
    const PassTable& table,
    double enough = std::numeric_limits<double>::infinity());

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_ORDER_BOUND_H_
