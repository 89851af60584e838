// SPDX-License-Identifier: Apache-2.0
#include "base/worker_pool.h"

#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/exit_code.h"
#include "base/interrupt.h"
#include "base/status_macros.h"

namespace weir {
namespace {

constexpr int kWorkerPollMilliseconds = 100;
// A longer time limit means none, because the clock would overflow.
constexpr double kLongestSeconds = 1e9;

// Messages in both directions of the socket: a byte count, then that many
// bytes.
using Length = uint64_t;

std::string Frame(const std::string& bytes) {
  const Length length = bytes.size();
  std::string frame(sizeof(length), '\0');
  std::memcpy(frame.data(), &length, sizeof(length));
  return frame + bytes;
}

// Returns true if all bytes that the length announces have arrived.
bool IsWhole(const std::string& frame) {
  Length length = 0;
  if (frame.size() < sizeof(length)) return false;
  std::memcpy(&length, frame.data(), sizeof(length));
  return frame.size() - sizeof(length) >= length;
}

// Returns false if the other side has closed the socket.
bool SendAll(int fd, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n =
        send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

// Appends the bytes available. Returns false if the other side has closed the
// socket.
bool ReceiveSome(int fd, std::string* bytes) {
  char buffer[1 << 16];
  const ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  bytes->append(buffer, static_cast<size_t>(n));
  return true;
}

[[noreturn]] void RunWorker(const Workers::Work& work, int fd) {
  DefaultOnInterrupt();
  ForgetInterrupt();
  std::string frame;
  while (true) {
    while (!IsWhole(frame)) {
      if (!ReceiveSome(fd, &frame)) _exit(0);
    }
    const auto output = work(frame.substr(sizeof(Length)));
    frame.clear();
    std::string answer(1, static_cast<char>(output.status().code()));
    answer += output.ok() ? *output : std::string(output.status().message());
    if (!SendAll(fd, Frame(answer))) _exit(0);
  }
}

// A worker's answer: a status code, then output or message.
constexpr size_t kCodeAt = sizeof(Length);
constexpr size_t kTextAt = kCodeAt + 1;

absl::StatusOr<std::string> RunRequest(const std::string& frame) {
  const auto code = static_cast<absl::StatusCode>(frame[kCodeAt]);
  std::string rest = frame.substr(kTextAt);
  if (code != absl::StatusCode::kOk) return absl::Status(code, rest);
  return rest;
}

}  // namespace

pid_t ForkChild() {
  std::fflush(nullptr);  // otherwise both processes would print it
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // True if the parent ended before prctl.
  if (getppid() != parent) _exit(kExitInternal);
  return 0;
}

std::string HowItEnded(int wait_status) {
  if (!WIFSIGNALED(wait_status)) {
    return absl::StrCat("exit code ", WEXITSTATUS(wait_status));
  }
  const int signal = WTERMSIG(wait_status);
  const char* name = sigdescr_np(signal);
  return absl::StrCat(name == nullptr ? "unknown" : name, " (signal ", signal,
                      signal == SIGKILL ? "; out of memory?)" : ")");
}

Workers::Workers(int num_processes, Work work, double time_limit_seconds)
    : num_processes_(std::max(num_processes, 1)),
      work_(std::move(work)),
      time_limit_seconds_(time_limit_seconds) {}

Workers::~Workers() { Clear(); }

void Workers::Clear() {
  line_.clear();
  for (Worker& worker : workers_) (void)Bury(&worker);
  workers_.clear();
}

void Workers::Give(int job, const std::string& input) {
  line_.emplace_back(job, Frame(input));
}

int Workers::num_unfinished() const {
  return static_cast<int>(
      line_.size() +
      std::count_if(workers_.begin(), workers_.end(),
                    [](const Worker& worker) { return worker.job >= 0; }));
}

absl::Status Workers::Start() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot create a socket: ", std::strerror(errno)));
  }
  const pid_t pid = ForkChild();
  const int error = errno;
  if (pid == 0) {
    // Otherwise a worker would not notice that its parent has closed its
    // socket.
    for (const Worker& other : workers_) close(other.fd);
    close(fds[0]);
    RunWorker(work_, fds[1]);
  }
  close(fds[1]);
  if (pid < 0) {
    close(fds[0]);
    return absl::UnavailableError(
        absl::StrCat("cannot create a process: ", std::strerror(error)));
  }
  Worker& worker = workers_.emplace_back();
  worker.pid = pid;
  worker.fd = fds[0];
  return absl::OkStatus();
}

// Kills the process if it is still running and reaps it. Returns an error that
// says how it ended.
absl::StatusOr<std::string> Workers::Bury(Worker* worker) {
  kill(worker->pid, SIGKILL);
  close(worker->fd);
  int status = 0;
  while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WasInterrupted(status)) {
    return absl::CancelledError("interrupted");
  }
  return absl::InternalError(
      absl::StrCat("its worker process died: ", HowItEnded(status)));
}

absl::Status Workers::HandOut() {
  while (!line_.empty()) {
    auto free = std::find_if(workers_.begin(), workers_.end(),
                             [](const Worker& w) { return w.job < 0; });
    if (free == workers_.end()) {
      if (workers_.size() == num_processes_) return absl::OkStatus();
      RETURN_IF_ERROR(Start());
      free = workers_.end() - 1;
    }
    if (SendAll(free->fd, line_.front().second)) {
      free->job = line_.front().first;
      free->deadline = Deadline();
      line_.pop_front();
    } else {  // died before it got a job
      (void)Bury(&*free);
      workers_.erase(free);
    }
  }
  return absl::OkStatus();
}

void Workers::Listen(Worker* worker, const Done& done) {
  const int job = worker->job;
  if (!ReceiveSome(worker->fd, &worker->bytes)) {
    absl::StatusOr<std::string> death = Bury(worker);
    worker->pid = 0;
    if (job >= 0) done(job, std::move(death));
  } else if (IsWhole(worker->bytes)) {
    absl::StatusOr<std::string> answer = RunRequest(worker->bytes);
    worker->bytes.clear();
    worker->job = -1;
    done(job, std::move(answer));
  }
}

Workers::Clock::time_point Workers::Deadline() const {
  if (time_limit_seconds_ >= kLongestSeconds) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(time_limit_seconds_));
}

void Workers::EndLate(const Done& done) {
  const Clock::time_point now = Clock::now();
  for (Worker& worker : workers_) {
    if (worker.pid == 0 || worker.job < 0 || now < worker.deadline) continue;
    (void)Bury(&worker);
    worker.pid = 0;
    done(worker.job,
         absl::DeadlineExceededError(absl::StrCat(
             "took longer than ", time_limit_seconds_, " s, the time limit")));
  }
}

absl::Status Workers::Wait(const Done& done) {
  RETURN_IF_ERROR(HandOut());
  std::vector<pollfd> polls;
  for (const Worker& worker : workers_) {
    polls.push_back({worker.fd, POLLIN, 0});
  }
  if (poll(polls.data(), polls.size(), kWorkerPollMilliseconds) > 0) {
    for (size_t i = 0; i < polls.size(); ++i) {
      if (polls[i].revents != 0) Listen(&workers_[i], done);
    }
  }
  EndLate(done);
  workers_.erase(std::remove_if(workers_.begin(), workers_.end(),
                                [](const Worker& w) { return w.pid == 0; }),
                 workers_.end());
  return HandOut();
}

absl::Status RunJobs(const Jobs& jobs) {
  int job = 0;  // in a worker: its current job
  const auto run = [&](const std::string& input) {
    std::memcpy(&job, input.data(), sizeof(job));
    return jobs.run(job);
  };
  Workers workers(jobs.num_processes, run, jobs.time_limit_seconds);
  // One queued job per process, so that none has to wait for its next job.
  const int num_given = 2 * std::max(jobs.num_processes, 1);
  int next = 0;
  while (!jobs.stop()) {
    while (next < jobs.num_jobs && workers.num_unfinished() < num_given) {
      workers.Give(next, std::string(reinterpret_cast<const char*>(&next),
                                     sizeof(next)));
      ++next;
    }
    if (workers.num_unfinished() == 0) break;
    RETURN_IF_ERROR(workers.Wait(jobs.done));
  }
  return absl::OkStatus();
}

int DefaultProcesses() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace weir
