// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <array>

#include "base/files.h"
#include "base/temporary_file.h"

namespace weir {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
// timeout(1) signals its child and immediately afterwards the child's process
// group, so the second signal is not a second request. Two seconds are far more
// than this takes, even on a busy machine, and less than a person or a script
// waits before sending another signal.
constexpr int kSameSenderSeconds = 2;

static_assert(kExitInterrupted == 128 + SIGINT);
static_assert(kExitTerminated == 128 + SIGTERM);
static_assert(kExitHungUp == 128 + SIGHUP);

// The recorded signal, 0 if none. Signal handlers can only set globals.
volatile sig_atomic_t noted = 0;
// Sender and time of the recorded signal, to distinguish the second signal of
// timeout(1) from a second request. Sender 0: not a process, such as a
// terminal.
volatile sig_atomic_t noted_sender = 0;
volatile sig_atomic_t noted_second = 0;
// The process that set the handlers. A forked child inherits them but prints
// nothing.
volatile sig_atomic_t owner = 0;

// Prints "interrupted by SIGTERM" with async-signal-safe functions, unless
// standard error is closed or would block. Starts a new line on a terminal,
// which may show a status line.
void PrintInterrupted(int signal) {
  pollfd poller = {STDERR_FILENO, POLLOUT, 0};
  if (getpid() != owner || poll(&poller, 1, 0) <= 0 ||
      poller.revents != POLLOUT) {
    return;
  }
  termios ignored = {};
  if (tcgetattr(STDERR_FILENO, &ignored) == 0) WriteAll(STDERR_FILENO, "\n");
  WriteAll(STDERR_FILENO, signal == SIGINT    ? "interrupted by SIGINT\n"
                          : signal == SIGTERM ? "interrupted by SIGTERM\n"
                                              : "interrupted by SIGHUP\n");
}

void Exit(int signal) {
  RemoveTemporaryFiles();
  PrintInterrupted(signal);
  _exit(128 + signal);
}

void Note(int signal, siginfo_t* info, void*) {
  const bool from_process =
      info->si_code == SI_USER || info->si_code == SI_TKILL;
  const int sender = from_process ? info->si_pid : 0;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int second = static_cast<int>(now.tv_sec);
  if (noted == 0) {
    noted_sender = sender;
    noted_second = second;
    noted = signal;
    return;
  }
  if (signal == noted && sender != 0 && sender == noted_sender &&
      second - noted_second <= kSameSenderSeconds) {
    return;
  }
  Exit(signal);
}

// Leaves SIGHUP ignored if it is, as nohup(1) requires.
void SetActions(const struct sigaction& action) {
  owner = getpid();
  for (const int signal : kSignals) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
}

void SetHandler(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  SetActions(action);
}

}  // namespace

void ExitOnInterrupt() { SetHandler(Exit); }

void DefaultOnInterrupt() { SetHandler(SIG_DFL); }

void NoteInterrupt() {
  struct sigaction action = {};
  action.sa_sigaction = Note;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  SetActions(action);
}

bool Interrupted() { return noted != 0; }

void ForgetInterrupt() { noted = 0; }

ExitCode InterruptExitCode() {
  return noted == 0 ? kExitInterrupted : static_cast<ExitCode>(128 + noted);
}

bool WasInterrupted(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return false;
  const int signal = WTERMSIG(wait_status);
  if (signal == SIGINT) return true;
  if (signal != SIGTERM && signal != SIGHUP) return false;
  for (int i = 0; i < 50 && !Interrupted(); ++i) {
    const timespec pause = {0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
  return Interrupted();
}

}  // namespace weir
