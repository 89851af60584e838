// SPDX-License-Identifier: Apache-2.0
// PyTorch's own check of a schedule file.
#ifndef WEIR_SCHEDULES_PYTORCH_CHECK_H_
#define WEIR_SCHEDULES_PYTORCH_CHECK_H_

#include <string>

#include "schedules/schedule_text.h"

namespace weir {

// What PyTorch's _validate_schedule says about the file, word for word but for
// line breaks; empty when it takes it. It stops at the first problem, looks at
// passes only, and allows what cannot run: an order that deadlocks, transfers
// that do not meet, a pass that comes twice.
// REQUIRES: stages x microbatches of the file fit in memory.
std::string PyTorchVerdict(const ScheduleRows& rows);

}  // namespace weir

#endif  // WEIR_SCHEDULES_PYTORCH_CHECK_H_
