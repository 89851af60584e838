// SPDX-License-Identifier: Apache-2.0
// Whether the ranks' orders can be executed together.
#ifndef WEIR_SCHEDULES_DEADLOCK_H_
#define WEIR_SCHEDULES_DEADLOCK_H_

#include "absl/status/status.h"
#include "schedules/schedule.h"

namespace weir {

// OK, or FailedPrecondition with the shortest cycle of ranks that wait for one
// another: "deadlock: rank 0 waits at position 1 (0B0) for 1B0 at position 2 of
// rank 1; rank 1 waits ...".
// REQUIRES: as Dependencies, and every stage has all its passes of every
// microbatch.
absl::Status CheckExecutable(const Schedule& schedule);

}  // namespace weir

#endif  // WEIR_SCHEDULES_DEADLOCK_H_
