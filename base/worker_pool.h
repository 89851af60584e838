// SPDX-License-Identifier: Apache-2.0
// Runs many jobs in a few processes, each of which runs one job after another.
// For use by a single thread: children end with the thread that started them.
#ifndef WEIR_BASE_WORKER_POOL_H_
#define WEIR_BASE_WORKER_POOL_H_

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

// A pool of processes, each of which runs one job at a time. State that `work`
// keeps in a process (such as a std::optional<FastSimulator> that it captured
// by reference and fills in its first job) is available to later jobs of that
// process.
//
// A job that kills its process (out of memory, SIGSEGV) does not affect other
// jobs: it ends with Internal and the name of the signal, and another process
// takes the next job. Workers are killed when their parent dies, even by
// SIGKILL.
class Workers {
 public:
  // Runs in a child, which sends the result to the parent.
  using Work =
      std::function<absl::StatusOr<std::string>(const std::string& input)>;
  using Done = std::function<void(int job, absl::StatusOr<std::string> output)>;

  // Processes start when jobs arrive and see the parent's memory of that time.
  // A job that takes longer than `time_limit_seconds` is killed with its
  // process and ends with DeadlineExceeded.
  Workers(int num_processes, Work work,
          double time_limit_seconds = kNoTimeLimit);
  ~Workers();  // ends the processes at once, busy or not
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Queues a job until a process is free. The caller chooses the number `job`.
  void Give(int job, const std::string& input);
  // Returns the number of queued and running jobs.
  int num_unfinished() const;
  // Drops the queued jobs and ends the processes.
  void Clear();

  // Starts queued jobs, waits for answers (at most a tenth of a second) and
  // calls `done` for each finished job, in the order in which they finish. An
  // interrupted job ends with Cancelled. Returns Unavailable if no process can
  // be created.
  absl::Status Wait(const Done& done);

 private:
  using Clock = std::chrono::steady_clock;

  struct Worker {
    pid_t pid = 0;  // 0: ended
    int fd = -1;
    int job = -1;                     // -1: none
    std::string bytes;                // received part of the job's answer
    Clock::time_point deadline = {};  // time limit of the job
  };

  absl::Status Start();
  absl::Status HandOut();
  absl::StatusOr<std::string> Bury(Worker* worker);
  void Listen(Worker* worker, const Done& done);
  void EndLate(const Done& done);
  Clock::time_point Deadline() const;  // for a job that starts now

  size_t num_processes_;
  Work work_;
  double time_limit_seconds_;
  std::deque<std::pair<int, std::string>> line_;
  std::vector<Worker> workers_;
};

// A fixed number of jobs to run in Workers.
struct Jobs {
  int num_jobs = 0;
  int num_processes = 1;  // maximum at the same time
  // Runs in a child, which sends the result to the parent.
  std::function<absl::StatusOr<std::string>(int job)> run;
  // Runs in the parent; see Workers::Wait.
  Workers::Done done;
  // Runs in the parent, about ten times per second. Returns true to end the
  // running jobs and start no more.
  std::function<bool()> stop;
  double time_limit_seconds = kNoTimeLimit;  // per job; see Workers
};

// Runs the jobs. Returns when every job is done, or stopped. Returns
// Unavailable if no process can be created.
absl::Status RunJobs(const Jobs& jobs);

// Calls fork(2). The child is killed when this thread ends for any reason.
pid_t ForkChild();

// Returns how a process with this status of waitpid ended, such as "exit code
// 3" or "Segmentation fault (signal 11)".
std::string HowItEnded(int wait_status);

// Returns one per core.
int DefaultProcesses();

}  // namespace weir

#endif  // WEIR_BASE_WORKER_POOL_H_
