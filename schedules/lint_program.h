// SPDX-License-Identifier: Apache-2.0
// What is wrong with the transfers and the stages' own actions of a program,
// beside deadlocks.
#ifndef WEIR_SCHEDULES_LINT_PROGRAM_H_
#define WEIR_SCHEDULES_LINT_PROGRAM_H_

#include <vector>

#include "schedules/lint.h"

namespace weir {

// Rule "transfer": what LinkProgram finds.
std::vector<Finding> FromFaults(const std::vector<TransferFault>& faults);

// Rules "gradient" and "sharding"; those that the program says nothing of are
// not judged.
std::vector<Finding> FindStageFaults(const CommProgram& program);

}  // namespace weir

#endif  // WEIR_SCHEDULES_LINT_PROGRAM_H_
