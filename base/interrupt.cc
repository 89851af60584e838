// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "base/exit_code.h"
#include "base/temporary_file.h"

namespace weir {
namespace {

// A signal handler has no other way to tell.
volatile std::sig_atomic_t interrupted = 0;

void Exit(int) {
  RemoveTemporaryFiles();
  _exit(kExitInterrupted);
}

void Note(int signal) {
  if (interrupted != 0) Exit(signal);
  interrupted = 1;
}

}  // namespace

void ExitOnInterrupt() { std::signal(SIGINT, Exit); }

void NoteInterrupt() { std::signal(SIGINT, Note); }

bool Interrupted() { return interrupted != 0; }

}  // namespace weir
