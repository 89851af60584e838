// SPDX-License-Identifier: Apache-2.0
// Handles the signals that request termination: SIGINT (Ctrl-C), SIGTERM
// (timeout, Slurm, kill) and SIGHUP (the terminal was closed) unless nohup
// ignores it. The exit code is 128 + the signal's number.
#ifndef WEIR_BASE_INTERRUPT_H_
#define WEIR_BASE_INTERRUPT_H_

#include "base/exit_code.h"

namespace weir {

// Makes each of these signals print its name to standard error and end the
// process.
void ExitOnInterrupt();

// Makes the first of these signals only set Interrupted(), so that the program
// can print its best result so far. A second one ends the process at once.
// Ignores a signal that the same process repeats within two seconds, because
// timeout(1) signals its child and then the child's process group.
void NoteInterrupt();
bool Interrupted();

// Restores the default actions, for a forked child that does not return here.
void DefaultOnInterrupt();

// Clears the recorded signal, for a child that continues after its parent was
// interrupted.
void ForgetInterrupt();

// Returns the code of the recorded signal, or kExitInterrupted if there is
// none.
ExitCode InterruptExitCode();

// Returns true if a child with this status of waitpid was interrupted. Death by
// SIGINT always counts. Death by SIGTERM or SIGHUP counts only if this process
// is signaled, too, within half a second; otherwise only the child was
// signaled.
bool WasInterrupted(int wait_status);

}  // namespace weir

#endif  // WEIR_BASE_INTERRUPT_H_
