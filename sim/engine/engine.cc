// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/engine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
// clang-format off
#include <xbt/base.h>  // version.h needs it first
#include <simgrid/version.h>
// clang-format on
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "sim/engine/event_loop.h"
#include "sim/engine/platform.h"

namespace weir::sim {
namespace {

constexpr int kPollMilliseconds = 100;

// Data that the child reports to its parent, apart from the recording.
struct Shared {
  std::atomic<int64_t> num_ended;
};

// The child process, the only one that uses SimGrid. Never returns.
[[noreturn]] void RunChild(const TaskGraph& graph,
                           std::span<const scenarios::Link> links,
                           Recording* recording, Shared* shared,
                           int message_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(message_fd, STDERR_FILENO);  // SimGrid prints there why it aborts
  DefaultOnInterrupt();
  try {
    Platform platform;
    RunEventLoop(graph, links, &platform, recording, &shared->num_ended);
    shared->num_ended = recording->num_ended();
    _exit(0);  // no destructors: SimGrid's teardown is slow
  } catch (const std::exception& error) {
    const std::string text = absl::StrCat(error.what(), "\n");
    (void)!write(message_fd, text.data(), text.size());
  }
  _exit(1);
}

// Relays progress until the child closes its end of the pipe; returns what the
// child printed. Ends the child when this process is interrupted, since only
// this process may have received the signal.
std::string Listen(pid_t child, int fd, const TaskGraph& graph,
                   const Shared& shared, const EngineOptions& options) {
  std::string text;
  pollfd poller{fd, POLLIN, 0};
  while (true) {
    if (Interrupted()) kill(child, SIGINT);
    const int ready = poll(&poller, 1, kPollMilliseconds);
    if (ready == 0 && options.progress) {
      options.progress(static_cast<double>(shared.num_ended) /
                       std::max(graph.num_tasks(), 1));
    }
    if (ready <= 0) continue;
    char buffer[4096];
    const ssize_t size = read(fd, buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    if (text.size() < size_t{64} * 1024) text.append(buffer, size);
  }
}

absl::Status ChildStatus(int wait_status, const std::string& printed) {
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
    return absl::OkStatus();
  }
  if (WasInterrupted(wait_status)) {
    return absl::CancelledError("interrupted");
  }
  if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL) {
    return absl::ResourceExhaustedError(
        "the simulation was killed: out of memory?");
  }
  const std::string how =
      WIFSIGNALED(wait_status)
          ? absl::StrCat("signal ", WTERMSIG(wait_status))
          : absl::StrCat("exit code ", WEXITSTATUS(wait_status));
  return absl::InternalError(
      absl::StrCat("the simulation ended with ", how, ": ", printed));
}

// Maps anonymous memory that parent and child share; null on failure.
void* MapShared(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

}  // namespace

Recording::Recording(size_t num_tasks, bool shares_cards, Writer writer)
    : num_tasks_(num_tasks),
      shares_gpus_(shares_cards),
      writer_(writer),
      data_(static_cast<double*>(writer == Writer::kChildProcess
                                     ? MapShared(bytes())
                                     : std::calloc(bytes(), 1))) {}

Recording::Recording(Recording&& other) noexcept
    : num_tasks_(other.num_tasks_),
      shares_gpus_(other.shares_gpus_),
      writer_(other.writer_),
      num_ended_(other.num_ended_),
      data_(std::exchange(other.data_, nullptr)) {}

Recording& Recording::operator=(Recording&& other) noexcept {
  std::swap(num_tasks_, other.num_tasks_);
  std::swap(shares_gpus_, other.shares_gpus_);
  std::swap(writer_, other.writer_);
  std::swap(num_ended_, other.num_ended_);
  std::swap(data_, other.data_);
  return *this;
}

Recording::~Recording() {
  if (data_ == nullptr) return;
  if (writer_ == Writer::kChildProcess) {
    munmap(data_, bytes());
  } else {
    std::free(data_);
  }
}

size_t Recording::bytes() const {
  const size_t num_arrays = shares_gpus_ ? 3 : 2;
  return std::max<size_t>(num_arrays * num_tasks_ * sizeof(double), 1);
}

absl::StatusOr<Recording> RunTaskGraph(const TaskGraph& graph,
                                       std::span<const scenarios::Link> links,
                                       const EngineOptions& options) {
  Recording recording(graph.num_tasks(), !graph.slowdowns.curves.empty(),
                      Recording::Writer::kChildProcess);
  void* memory = MapShared(sizeof(Shared));
  int fds[2];
  if (!recording.valid() || memory == nullptr || pipe2(fds, O_CLOEXEC) != 0) {
    if (memory != nullptr) munmap(memory, sizeof(Shared));
    return absl::ResourceExhaustedError("the simulation ran out of memory");
  }
  Shared* shared = new (memory) Shared{};
  // SimGrid flushes all streams: buffered output would be printed twice.
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(fds[0]);
    RunChild(graph, links, &recording, shared, fds[1]);
  }
  close(fds[1]);
  absl::Status status;
  if (child < 0) {
    status = absl::ResourceExhaustedError(
        "cannot start a process for the simulation");
  } else {
    const std::string printed = Listen(child, fds[0], graph, *shared, options);
    int wait_status = 0;
    while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
    }
    status = ChildStatus(wait_status, printed);
  }
  close(fds[0]);
  recording.set_num_ended(shared->num_ended);
  munmap(memory, sizeof(Shared));
  RETURN_IF_ERROR(status);
  return recording;
}

std::string SimGridVersion() {
  return absl::StrCat(SIMGRID_VERSION_MAJOR, ".", SIMGRID_VERSION_MINOR);
}

}  // namespace weir::sim
