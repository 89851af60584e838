// SPDX-License-Identifier: Apache-2.0
// Runs a sweep as a Slurm job array: task i of n runs shard i/n on a node of
// its own.
#ifndef WEIR_PLAN_SWEEP_SLURM_H_
#define WEIR_PLAN_SWEEP_SLURM_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/worker_pool.h"

namespace weir::plan {

struct SlurmSweep {
  std::string program;  // weir
  std::string file;     // the sweep
  std::string folder;   // folder of shards; absolute paths, valid on nodes
  int num_nodes = 1;
  double time_limit_seconds = kNoTimeLimit;  // per point
  std::string sbatch_args;  // further arguments, quoted as in a shell
  bool force = false;       // the script may replace any file
};

// Returns the job script. Every task uses --resume, so a task that Slurm
// restarts after a node failure continues.
std::string SlurmScript(const SlurmSweep& sweep);

// Writes the script to the folder of the shards, submits it and returns the job
// ID. Returns Unavailable if there is no sbatch.
absl::StatusOr<std::string> SubmitToSlurm(const SlurmSweep& sweep);

// Returns true if no task of the job is pending or running.
bool SlurmJobHasEnded(const std::string& job);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SWEEP_SLURM_H_
