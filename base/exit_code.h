// SPDX-License-Identifier: Apache-2.0
// What the exit code of weir, and of weir-calibrate, says.
#ifndef WEIR_BASE_EXIT_CODE_H_
#define WEIR_BASE_EXIT_CODE_H_

#include "absl/status/status.h"

namespace weir {

enum ExitCode : int {
  kExitOk = 0,
  kExitNegative = 1,   // a verdict: does not fit, deadlock
  kExitUsage = 2,      // the user can mend it
  kExitMissing = 3,    // something is missing on this machine
  kExitInternal = 70,  // our bug
  // 128 + the signal that ended it.
  kExitHungUp = 129,       // SIGHUP: the terminal was closed
  kExitInterrupted = 130,  // SIGINT: Ctrl-C
  kExitTerminated = 143    // SIGTERM: timeout, Slurm, kill
};

// Cancelled gives the code of the signal that was noted (interrupt.h).
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace weir

#endif  // WEIR_BASE_EXIT_CODE_H_
