// SPDX-License-Identifier: Apache-2.0
// Why a plan lost, in words with numbers.
#ifndef WEIR_PLAN_WHY_H_
#define WEIR_PLAN_WHY_H_

#include <string>

#include "plan/confirm.h"

namespace weir {

// "5.2 % slower (1.20 s, best 1.14 s): bubble +61.0 ms, tensor collectives
// +12.0 ms, compute -13.0 ms": what the busiest GPU does longer than the best
// plan's, largest first. Of the objective memory or cost what that is made of.
std::string WhyNotBest(Objective objective, const Confirmed& best,
                       const Confirmed& plan);

}  // namespace weir

#endif  // WEIR_PLAN_WHY_H_
