// SPDX-License-Identifier: Apache-2.0
// GPUs that points of a sweep leave idle.
#ifndef WEIR_PLAN_SWEEP_IDLE_POINTS_H_
#define WEIR_PLAN_SWEEP_IDLE_POINTS_H_

#include <string>

#include "plan/sweep/sweep.h"

namespace weir::plan {

// Returns a warning if points leave GPUs of the cluster idle without saying so;
// empty: none. Looks only at the first points of a large sweep.
std::string IdlePointsWarning(const ResolvedSweep& sweep);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SWEEP_IDLE_POINTS_H_
