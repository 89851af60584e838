// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/weir/terminal_run.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"

namespace weir::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLongest(120);
constexpr int kPollMilliseconds = 50;

std::string OutPath() { return absl::StrCat(TestFolder(), "/.terminal.out"); }

}  // namespace

TerminalRun::TerminalRun(absl::string_view program,
                         absl::string_view arguments) {
  const std::string line = absl::StrCat(
      "cd '", TestFolder(), "' && unset CI NO_COLOR && export TERM=xterm && ",
      "exec '", program, "' ", arguments, " </dev/null >'", OutPath(), "'");
  const winsize size = {24, 80, 0, 0};
  pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
  if (pid_ != 0) return;
  execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
  _exit(127);
}

TerminalRun::~TerminalRun() {
  if (terminal_ >= 0) close(terminal_);
  if (pid_ <= 0) return;
  kill(-pid_, SIGKILL);
  if (!has_ended_) waitpid(pid_, nullptr, 0);
}

bool TerminalRun::ReadSome(int milliseconds) {
  pollfd poller{terminal_, POLLIN, 0};
  if (poll(&poller, 1, milliseconds) <= 0) return true;
  char buffer[4096];
  const ssize_t size = read(terminal_, buffer, sizeof(buffer));
  if (size > 0) shown_.append(buffer, static_cast<size_t>(size));
  return size > 0 || (size < 0 && errno == EINTR);
}

bool TerminalRun::WaitFor(absl::string_view text) {
  const Clock::time_point start = Clock::now();
  while (!absl::StrContains(shown_, text)) {
    if (Clock::now() - start > kLongest || !ReadSome(kPollMilliseconds)) {
      return false;
    }
  }
  return true;
}

void TerminalRun::Signal(int signal) const { kill(pid_, signal); }

void TerminalRun::SignalGroup(int signal) const { kill(-pid_, signal); }

void TerminalRun::HangUp() {
  close(terminal_);
  terminal_ = -1;
}

int TerminalRun::Wait() {
  const Clock::time_point start = Clock::now();
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() - start > kLongest) return 124;
    // Reads, as the program could otherwise block on a full terminal buffer.
    if (terminal_ < 0 || !ReadSome(kPollMilliseconds)) {
      usleep(1000 * kPollMilliseconds);
    }
  }
  has_ended_ = true;
  while (terminal_ >= 0) {
    const size_t before = shown_.size();
    if (!ReadSome(0) || shown_.size() == before) break;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool TerminalRun::HasLeftProcesses() const {
  // Processes that are killed with their parent take some time to end.
  const Clock::time_point start = Clock::now();
  while (kill(-pid_, 0) == 0) {
    if (Clock::now() - start > kLongest / 10) return true;
    usleep(1000 * kPollMilliseconds);
  }
  return false;
}

std::string TerminalRun::out() const {
  return ReadFile(OutPath()).value_or("");
}

}  // namespace weir::cli
