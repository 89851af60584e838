// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/exit_code.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/worker_pool.h"

namespace weir::cli {
namespace {

// A frame is its kind, the number of its bytes, and the bytes.
constexpr char kCall = 'c', kProgress = 'p', kDone = 'd';
constexpr size_t kHeadBytes = 1 + sizeof(uint32_t);

std::string Frame(char kind, absl::string_view text) {
  const uint32_t size = static_cast<uint32_t>(text.size());
  std::string frame(kHeadBytes, kind);
  std::memcpy(frame.data() + 1, &size, sizeof(size));
  frame.append(text.data(), text.size());
  return frame;
}

uint32_t SizeOf(absl::string_view head) {
  uint32_t size = 0;
  std::memcpy(&size, head.data() + 1, sizeof(size));
  return size;
}

bool ReadExactly(int fd, char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t count = read(fd, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

// Runs in the child until the parent closes the socket.
[[noreturn]] void RunCalls(const WorkerProcess::Work& work, int fd) {
  DefaultOnInterrupt();
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  const WorkerProcess::Progress progress = [fd](const std::string& text) {
    if (!WriteAll(fd, Frame(kProgress, text))) _exit(kExitInternal);
  };
  char head[kHeadBytes];
  while (ReadExactly(fd, head, sizeof(head))) {
    std::string call(SizeOf({head, sizeof(head)}), '\0');
    if (!ReadExactly(fd, call.data(), call.size())) break;
    if (!WriteAll(fd, Frame(kDone, work(call, progress)))) break;
  }
  _exit(kExitOk);
}

}  // namespace

absl::Status WorkerProcess::StartProcess() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot create a socket: ", std::strerror(errno)));
  }
  const pid_t pid = ForkChild();
  const int error = errno;
  if (pid == 0) {
    close(fds[0]);
    RunCalls(work_, fds[1]);
  }
  close(fds[1]);
  if (pid < 0) {
    close(fds[0]);
    return absl::UnavailableError(
        absl::StrCat("cannot create a process: ", std::strerror(error)));
  }
  pid_ = pid;
  fd_ = fds[0];
  return absl::OkStatus();
}

absl::Status WorkerProcess::Start(const std::string& call) {
  bytes_.clear();
  // A process that has ended since its last call is replaced once.
  for (int tries = 0; tries < 2; ++tries) {
    if (pid_ == 0) {
      absl::Status started = StartProcess();
      if (!started.ok()) return started;
    }
    if (WriteAll(fd_, Frame(kCall, call))) {
      is_busy_ = true;
      return absl::OkStatus();
    }
    Kill();
  }
  return absl::UnavailableError("the worker does not accept calls");
}

absl::Status WorkerProcess::Receive(
    const std::function<void(const std::string&)>& progress,
    const std::function<void(const std::string&)>& done) {
  char buffer[1 << 16];
  const ssize_t count = read(fd_, buffer, sizeof(buffer));
  if (count < 0 && errno == EINTR) return absl::OkStatus();
  if (count <= 0) return Bury();
  bytes_.append(buffer, static_cast<size_t>(count));
  while (bytes_.size() >= kHeadBytes) {
    const size_t size = SizeOf(bytes_);
    if (bytes_.size() < kHeadBytes + size) break;
    const char kind = bytes_[0];
    const std::string text = bytes_.substr(kHeadBytes, size);
    bytes_.erase(0, kHeadBytes + size);
    if (kind == kProgress) {
      progress(text);
      continue;
    }
    is_busy_ = false;
    done(text);
  }
  return absl::OkStatus();
}

absl::Status WorkerProcess::Bury() {
  kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  close(fd_);
  pid_ = 0;
  fd_ = -1;
  is_busy_ = false;
  return absl::InternalError(
      absl::StrCat("the worker ended with ", HowItEnded(status)));
}

void WorkerProcess::Kill() {
  if (pid_ != 0) Bury().IgnoreError();
}

}  // namespace weir::cli
