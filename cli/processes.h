// SPDX-License-Identifier: Apache-2.0
// Many jobs, each in a process of its own, some at the same time.
#ifndef WEIR_CLI_PROCESSES_H_
#define WEIR_CLI_PROCESSES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weir {

struct Jobs {
  int num_jobs = 0;
  int num_processes = 1;  // at the same time
  // Runs in a child; what it returns goes to the parent.
  std::function<absl::StatusOr<std::string>(int job)> run;
  // In the parent, in the order in which jobs end. Internal for a child that
  // died.
  std::function<void(int job, absl::StatusOr<std::string> output)> done;
  // In the parent: start no more and end those that run.
  std::function<bool()> stop;
};

// Returns when every job is done, or stopped. Unavailable when the machine
// gives no processes.
absl::Status RunJobs(const Jobs& jobs);

// One per core.
int DefaultProcesses();

}  // namespace weir

#endif  // WEIR_CLI_PROCESSES_H_
