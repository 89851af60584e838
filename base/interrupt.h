// SPDX-License-Identifier: Apache-2.0
// Signals that ask a program to end: SIGINT (Ctrl-C), SIGTERM (timeout, Slurm,
// kill) and SIGHUP (the terminal was closed; nohup keeps it ignored). The exit
// code is 128 + the signal's number.
#ifndef WEIR_BASE_INTERRUPT_H_
#define WEIR_BASE_INTERRUPT_H_

#include "base/exit_code.h"

namespace weir {

// Makes each of these signals end the process at once.
void ExitOnInterrupt();

// Makes the first of these signals only set Interrupted(), so that the program
// can print its best result so far. A second one ends the process at once.
// A signal that the same process sends again within two seconds does not count:
// timeout(1) signals its child and then the child's process group.
void NoteInterrupt();
bool Interrupted();

// Restores the default actions, for a forked child that does not return here.
void DefaultOnInterrupt();

// Clears what was noted, for a child that works on after its parent was
// interrupted.
void ForgetInterrupt();

// The code of the signal that was noted, kExitInterrupted if there was none.
ExitCode InterruptExitCode();

// Whether a child that ended so was interrupted; of waitpid's status. SIGINT
// says so; of the others this process must get one, too, at most half a second
// later: who sends a signal to a child alone wants that child gone.
bool WasInterrupted(int wait_status);

}  // namespace weir

#endif  // WEIR_BASE_INTERRUPT_H_
