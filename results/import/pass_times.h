// SPDX-License-Identifier: Apache-2.0
// Times of passes on one worker, which need no clock of another one.
#ifndef WEIR_RESULTS_IMPORT_PASS_TIMES_H_
#define WEIR_RESULTS_IMPORT_PASS_TIMES_H_

#include "absl/status/status.h"
#include "results/import/recorded_run.h"

namespace weir::results {

// Returns InvalidArgument if a worker starts the backward of a microbatch no
// later than its forward, more than AllowedSeconds before the forward ends; in
// runs whose times may be those of launches or of another rank, only notes it.
// Notes passes of a worker that overlap by more than AllowedSeconds: a backward
// with its own forward is wrong, but the forward of one microbatch and the
// backward of another may be meant to, as in DualPipe. Does not check runs
// whose passes are recorded in parts. Requires: operations are sorted.
absl::Status CheckPassTimes(RecordedRun* run);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_PASS_TIMES_H_
