// SPDX-License-Identifier: Apache-2.0
// Many jobs in a few processes, which live on from one job to the next. Of one
// thread: children end with the thread that started them.
#ifndef WEIR_BASE_PROCESSES_H_
#define WEIR_BASE_PROCESSES_H_

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weir {

inline constexpr double kNoTimeLimit = std::numeric_limits<double>::infinity();

// Processes that take one job after another. What `work` keeps in one of them
// (a std::optional<Ranker> that it captured by reference and fills at its first
// job) is there for the next job of that process.
//
// A job that takes its process down (out of memory, SIGSEGV) is lost alone: it
// ends as Internal with the name of the signal, and another process takes the
// next. Children end with their parent, even with kill -9.
class Workers {
 public:
  // Runs in a child; what it returns goes to the parent.
  using Work =
      std::function<absl::StatusOr<std::string>(const std::string& input)>;
  using Done = std::function<void(int job, absl::StatusOr<std::string> output)>;

  // Processes are started as jobs come: they see memory as it was then. A job
  // that takes longer than `time_limit_seconds` is killed with its process and
  // ends as DeadlineExceeded.
  Workers(int num_processes, Work work,
          double time_limit_seconds = kNoTimeLimit);
  ~Workers();  // ends them at once, whatever they are at
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Waits in line until a process is free; `job` is the caller's name for it.
  void Give(int job, std::string input);
  // In line or at work.
  int num_unfinished() const;
  // Drops the jobs in line and ends the processes.
  void Clear();

  // Hands jobs out, waits for an answer (a tenth of a second at most) and calls
  // `done` for each that came, in the order in which they end. An interrupted
  // job is Cancelled. Unavailable when the machine gives no process.
  absl::Status Wait(const Done& done);

 private:
  using Clock = std::chrono::steady_clock;

  struct Worker {
    pid_t pid = 0;  // 0: ended
    int fd = -1;
    int job = -1;                     // -1: free
    std::string bytes;                // of its answer, so far
    Clock::time_point deadline = {};  // of its job
  };

  absl::Status Start();
  absl::Status HandOut();
  absl::StatusOr<std::string> Bury(Worker* worker);
  void Listen(Worker* worker, const Done& done);
  void EndLate(const Done& done);
  Clock::time_point Deadline() const;  // of a job that starts now

  size_t num_processes_;
  Work work_;
  double time_limit_seconds_;
  std::deque<std::pair<int, std::string>> line_;
  std::vector<Worker> workers_;
};

// The same for jobs that are known beforehand.
struct Jobs {
  int num_jobs = 0;
  int num_processes = 1;  // at the same time
  // Runs in a child; what it returns goes to the parent.
  std::function<absl::StatusOr<std::string>(int job)> run;
  // In the parent, see Workers::Wait.
  Workers::Done done;
  // In the parent, about ten times a second: start no more and end those that
  // run.
  std::function<bool()> stop;
  double time_limit_seconds = kNoTimeLimit;  // of each, see Workers
};

// Returns when every job is done, or stopped. Unavailable when the machine
// gives no processes.
absl::Status RunJobs(const Jobs& jobs);

// fork(2) for a child that is killed when this thread ends, however it ends.
pid_t ForkChild();

// "exit code 3", "Segmentation fault (signal 11)"; of waitpid's status.
std::string HowItEnded(int wait_status);

// One per core.
int DefaultProcesses();

}  // namespace weir

#endif  // WEIR_BASE_PROCESSES_H_
