// SPDX-License-Identifier: Apache-2.0
// PyTorch's own check of a schedule file.
#ifndef WEIR_SCHEDULES_INTEROP_PYTORCH_CHECK_H_
#define WEIR_SCHEDULES_INTEROP_PYTORCH_CHECK_H_

#include <string>

#include "schedules/interop/schedule_text.h"

namespace weir::schedules {

// Returns the message of PyTorch's _validate_schedule about the file, literally
// except for line breaks; empty if it accepts the file. The check stops at the
// first problem, considers only passes, and accepts programs that cannot run: a
// deadlock, mismatched transfers, a repeated pass. Requires: stages x
// microbatches of the file fit in memory.
std::string PyTorchVerdict(const ScheduleRows& rows);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_INTEROP_PYTORCH_CHECK_H_
