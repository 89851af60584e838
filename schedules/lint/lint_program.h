// SPDX-License-Identifier: Apache-2.0
// Finds faults, other than deadlocks, in a program's transfers, UNSHARD,
// RESHARD and REDUCE_GRAD.
#ifndef WEIR_SCHEDULES_LINT_LINT_PROGRAM_H_
#define WEIR_SCHEDULES_LINT_LINT_PROGRAM_H_

#include <vector>

#include "schedules/lint/lint.h"

namespace weir::schedules {

// Returns the faults of LinkProgram as findings of rule "transfer".
std::vector<Finding> FromFaults(const std::vector<TransferFault>& faults);

// Returns findings of rules "gradient" and "sharding". Skips a rule if the
// program has no REDUCE_GRAD or UNSHARD, respectively.
std::vector<Finding> FindStageFaults(const CommProgram& program);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_LINT_LINT_PROGRAM_H_
