// SPDX-License-Identifier: Apache-2.0
// Handles the signals that ask a program to end: SIGINT (Ctrl-C), SIGTERM
// (timeout, Slurm, kill) and SIGHUP (the terminal was closed), unless nohup
// ignores it. The exit code is 128 + the signal's number.
#ifndef WEIR_BASE_INTERRUPT_H_
#define WEIR_BASE_INTERRUPT_H_

#include "base/exit_code.h"

namespace weir {

// Makes each signal print its name to standard error and end the process.
void ExitOnInterrupt();

// Makes the first of these signals only set Interrupted(), so that the program
// can print its best result so far. A second one ends the process at once.
// Ignores a signal that the same process sends again within two seconds,
// because timeout(1) signals its child and then the child's process group.
void NoteInterrupt();
bool Interrupted();

// Restores the default actions, for a forked child that does not return here.
void DefaultOnInterrupt();

// Clears a noted signal, for a child that continues after its parent was
// interrupted.
void ForgetInterrupt();

// Returns the code of the noted signal, or kExitInterrupted if there is none.
ExitCode InterruptExitCode();

// Returns whether a child with this status of waitpid was interrupted. Death by
// SIGINT always counts. Death by SIGTERM or SIGHUP counts if this process gets
// a signal, too, within half a second: otherwise only the child was to end.
bool WasInterrupted(int wait_status);

}  // namespace weir

#endif  // WEIR_BASE_INTERRUPT_H_
