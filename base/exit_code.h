// SPDX-License-Identifier: Apache-2.0
// Exit codes of weir and weir-calibrate.
#ifndef WEIR_BASE_EXIT_CODE_H_
#define WEIR_BASE_EXIT_CODE_H_

#include "absl/status/status.h"

namespace weir {

enum ExitCode : int {
  kExitOk = 0,
  kExitNegative = 1,   // a negative verdict: does not fit, deadlock
  kExitUsage = 2,      // an error that the user can correct
  kExitMissing = 3,    // something is missing on this machine
  kExitInternal = 70,  // a bug in weir
  // 128 + the number of the signal that ended the program.
  kExitHungUp = 129,       // SIGHUP: the terminal was closed
  kExitInterrupted = 130,  // SIGINT: Ctrl-C
  kExitTerminated = 143    // SIGTERM: timeout, Slurm, kill
};

// Returns the exit code for a status. For Cancelled, it is the code of the
// recorded signal (interrupt.h).
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace weir

#endif  // WEIR_BASE_EXIT_CODE_H_
