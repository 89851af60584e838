// SPDX-License-Identifier: Apache-2.0
#include "cli/processes.h"

#include <poll.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/status_macros.h"

namespace weir {
namespace {

constexpr int kPollMilliseconds = 100;

struct Child {
  int job = 0;
  pid_t pid = 0;
  int fd = -1;
  std::string bytes;  // a status code, then its message or the output
};

void WriteAll(int fd, const std::string& bytes) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + written, bytes.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // nobody reads any more
    written += static_cast<size_t>(n);
  }
}

[[noreturn]] void RunChild(const Jobs& jobs, int job, int fd) {
  ExitOnInterrupt();
  const absl::StatusOr<std::string> output = jobs.run(job);
  std::string bytes(1, static_cast<char>(output.status().code()));
  bytes += output.ok() ? *output : std::string(output.status().message());
  WriteAll(fd, bytes);
  _exit(0);
}

absl::StatusOr<Child> Start(const Jobs& jobs, int job) {
  int fds[2];
  if (pipe(fds) != 0) return absl::UnavailableError("no pipe to be had");
  std::fflush(nullptr);  // else both would print it
  const pid_t pid = fork();
  if (pid < 0) {
    close(fds[0]);
    close(fds[1]);
    return absl::UnavailableError("no process to be had");
  }
  if (pid == 0) {
    close(fds[0]);
    RunChild(jobs, job, fds[1]);
  }
  close(fds[1]);
  return Child{job, pid, fds[0], {}};
}

// Reads what is there; true when the child has said all.
bool ReadSome(Child* child) {
  char buffer[1 << 16];
  const ssize_t n = read(child->fd, buffer, sizeof(buffer));
  if (n < 0 && errno == EINTR) return false;
  if (n <= 0) return true;
  child->bytes.append(buffer, static_cast<size_t>(n));
  return false;
}

absl::StatusOr<std::string> Finish(const Child& child) {
  close(child.fd);
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || child.bytes.empty()) {
    return absl::InternalError("the process that simulated it died");
  }
  const auto code = static_cast<absl::StatusCode>(child.bytes[0]);
  std::string rest = child.bytes.substr(1);
  if (code != absl::StatusCode::kOk) return absl::Status(code, rest);
  return rest;
}

void Kill(std::vector<Child>* children) {
  for (const Child& child : *children) {
    kill(child.pid, SIGKILL);
    (void)Finish(child);
  }
  children->clear();
}

// Waits a little, and takes what the children say; those that end leave.
void Collect(const Jobs& jobs, std::vector<Child>* children) {
  std::vector<pollfd> polls;
  for (const Child& child : *children) polls.push_back({child.fd, POLLIN, 0});
  if (poll(polls.data(), polls.size(), kPollMilliseconds) <= 0) return;
  std::vector<Child> running;
  for (size_t i = 0; i < polls.size(); ++i) {
    Child& child = (*children)[i];
    if (polls[i].revents == 0 || !ReadSome(&child)) {
      running.push_back(std::move(child));
    } else {
      jobs.done(child.job, Finish(child));
    }
  }
  *children = std::move(running);
}

}  // namespace

absl::Status RunJobs(const Jobs& jobs) {
  std::vector<Child> children;
  int next = 0;
  const auto limit = static_cast<size_t>(std::max(jobs.num_processes, 1));
  while (next < jobs.num_jobs || !children.empty()) {
    if (jobs.stop()) break;
    if (next < jobs.num_jobs && children.size() < limit) {
      absl::StatusOr<Child> child = Start(jobs, next);
      if (!child.ok()) {
        Kill(&children);
        return child.status();
      }
      children.push_back(*std::move(child));
      ++next;
      continue;
    }
    Collect(jobs, &children);
  }
  Kill(&children);
  return absl::OkStatus();
}

int DefaultProcesses() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace weir
