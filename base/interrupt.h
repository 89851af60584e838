// SPDX-License-Identifier: Apache-2.0
// Ctrl-C ends a program with exit code 130.
#ifndef WEIR_BASE_INTERRUPT_H_
#define WEIR_BASE_INTERRUPT_H_

namespace weir {

// From now on Ctrl-C exits at once.
void ExitOnInterrupt();

// From now on the first Ctrl-C is only noted, for Interrupted() to tell; the
// second exits at once.
void NoteInterrupt();
bool Interrupted();

}  // namespace weir

#endif  // WEIR_BASE_INTERRUPT_H_
