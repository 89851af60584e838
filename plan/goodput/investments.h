// SPDX-License-Identifier: Apache-2.0
// What would improve the goodput of a job most.
#ifndef WEIR_PLAN_GOODPUT_INVESTMENTS_H_
#define WEIR_PLAN_GOODPUT_INVESTMENTS_H_

#include <vector>

#include "plan/goodput/goodput.h"

namespace weir::plan {

// Simulates the runs of the report again with one figure improved at a time:
// by 10 % with the same interval for the elasticity, and twice as good with the
// interval scaled by sqrt(stall x mean time between failures), as the closed
// forms do, for what it saves. Also one more spare node, and the other modes of
// checkpoints. Leaves out what changes nothing. Requires: report.estimate.
std::vector<Investment> InvestmentsOf(const GoodputReport& report);

}  // namespace weir::plan

#endif  // WEIR_PLAN_GOODPUT_INVESTMENTS_H_
