// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/weir/limited_run.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace weir::cli {
namespace {

constexpr size_t kMaxErrBytes = size_t{1} << 20;
// A sanitizer reserves terabytes of address space and slows programs down.
constexpr bool kIsSanitized = WEIR_SANITIZED != 0;
constexpr double kSanitizerSlowdown = 10;

// Runs between fork and exec.
[[noreturn]] void Become(char* const* arguments, const char* folder, int err,
                         const RunLimits& limits) {
  setsid();
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  const rlimit space = {limits.address_space_bytes, limits.address_space_bytes};
  const rlimit none = {0, 0};
  if (!kIsSanitized) setrlimit(RLIMIT_AS, &space);
  setrlimit(RLIMIT_CORE, &none);
  if (chdir(folder) != 0) _exit(126);
  execv(arguments[0], arguments);
  _exit(127);
}

std::string Contents(int fd) {
  std::string text(kMaxErrBytes, '\0');
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  text.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return text;
}

}  // namespace

LimitedRun RunLimited(const std::vector<std::string>& arguments,
                      const std::string& folder, const RunLimits& limits) {
  std::vector<char*> words;
  for (const std::string& word : arguments) {
    words.push_back(const_cast<char*>(word.c_str()));
  }
  words.push_back(nullptr);
  LimitedRun run;
  const int err = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (err < 0) return run;
  const pid_t pid = fork();
  if (pid == 0) Become(words.data(), folder.c_str(), err, limits);
  int status = 0;
  if (pid > 0) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    auto pause = std::chrono::milliseconds(1);
    const double limit_seconds =
        limits.seconds * (kIsSanitized ? kSanitizerSlowdown : 1);
    while (waitpid(pid, &status, WNOHANG) == 0) {
      if (Clock::now() - start > std::chrono::duration<double>(limit_seconds)) {
        run.hung = true;
        kill(-pid, SIGKILL);
        waitpid(pid, &status, 0);
        break;
      }
      std::this_thread::sleep_for(pause);
      if (pause < std::chrono::milliseconds(16)) pause *= 2;
    }
    kill(-pid, SIGKILL);  // kills remaining children
    if (WIFEXITED(status)) run.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) run.signal = WTERMSIG(status);
  }
  run.err = Contents(err);
  close(err);
  return run;
}

}  // namespace weir::cli
