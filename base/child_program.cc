// SPDX-License-Identifier: Apache-2.0
#include "base/child_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/status_macros.h"

namespace weir {

absl::StatusOr<ScratchFile> ScratchFile::Make(absl::string_view contents) {
  // Not close-on-exec, so that it stays open in the child.
  ScratchFile file(memfd_create("weir", 0));
  if (file.fd_ < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot create a file in memory: ", std::strerror(errno)));
  }
  if (WriteAll(file.fd_, contents)) return file;
  return absl::UnavailableError(absl::StrCat(
      "a file in memory cannot be written: ", std::strerror(errno)));
}

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

ScratchFile::~ScratchFile() {
  if (fd_ >= 0) close(fd_);
}

std::string ScratchFile::path() const {
  return absl::StrCat("/proc/self/fd/", fd_);
}

std::string FindProgram(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    return access(program.c_str(), X_OK) == 0 ? program : "";
  }
  const char* const path = std::getenv("PATH");
  if (path == nullptr) return "";
  const std::string folders = path;
  for (absl::string_view folder : absl::StrSplit(folders, ':')) {
    std::string candidate =
        absl::StrCat(folder.empty() ? "." : folder, "/", program);
    std::error_code ignored;
    if (access(candidate.c_str(), X_OK) == 0 &&
        std::filesystem::is_regular_file(candidate, ignored)) {
      return candidate;
    }
  }
  return "";
}

namespace {

using Clock = std::chrono::steady_clock;

// Runs between fork and exec, where nothing may take a lock.
[[noreturn]] void BecomeProgram(char* const* arguments, int output, int errors,
                                pid_t us) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != us) _exit(127);  // the parent ended before prctl
  DefaultOnInterrupt();
  // A program inherits ignored signals. If it inherited an ignored SIGXFSZ, it
  // would end with an incomplete file and exit code 0.
  std::signal(SIGXFSZ, SIG_DFL);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execv(arguments[0], arguments);
  _exit(127);
}

absl::StatusOr<int> OpenForOutput(const std::string& path) {
  const int file =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  return absl::UnavailableError(
      absl::StrCat(path, ": cannot be written: ", std::strerror(errno)));
}

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns true if the child has ended. Does not reap it: until then neither its
// process id nor its group id can be reused.
bool HasEnded(pid_t pid) {
  siginfo_t info = {};
  const int result = waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT);
  if (result < 0) return errno != EINTR;
  return info.si_pid == pid;
}

absl::StatusOr<ChildEnd> WaitFor(pid_t pid, double limit_seconds,
                                 const std::function<void()>& tick) {
  const Clock::time_point start = Clock::now();
  ChildEnd end;
  bool interrupted = false;
  // The pause grows, so that the end of a short run is noticed at once.
  auto pause = std::chrono::microseconds(200);
  while (!HasEnded(pid)) {
    if (tick) tick();
    interrupted = Interrupted();
    end.was_killed = !interrupted && SecondsSince(start) >= limit_seconds;
    if (interrupted || end.was_killed) {
      kill(pid, SIGKILL);  // in case it has no group of its own yet
      break;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(20'000));
  }
  // Kills any remaining descendants before the group id can be reused.
  kill(-pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (interrupted) return absl::CancelledError("interrupted");
  end.seconds = SecondsSince(start);
  end.exit_code =
      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return end;
}

}  // namespace

absl::StatusOr<ChildEnd> RunChildProgram(
    const std::vector<std::string>& arguments, const std::string& output_path,
    double limit_seconds, const std::string& error_path,
    const std::function<void()>& tick) {
  std::vector<std::string> words = arguments;
  words[0] = FindProgram(words[0]);
  if (words[0].empty()) {
    return absl::NotFoundError(
        absl::StrCat(arguments[0], ": not found on PATH"));
  }
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ASSIGN_OR_RETURN(const int output, OpenForOutput(output_path));
  int errors = output;
  if (!error_path.empty()) {
    const absl::StatusOr<int> opened = OpenForOutput(error_path);
    if (!opened.ok()) {
      close(output);
      return opened.status();
    }
    errors = *opened;
  }
  std::fflush(nullptr);
  const pid_t us = getpid();
  const pid_t pid = fork();
  const int error = errno;
  if (pid == 0) BecomeProgram(pointers.data(), output, errors, us);
  if (errors != output) close(errors);
  close(output);
  if (pid < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot create a process: ", std::strerror(error)));
  }
  setpgid(pid, pid);  // the child does the same; either may come first
  return WaitFor(pid, limit_seconds, tick);
}

}  // namespace weir
