// SPDX-License-Identifier: Apache-2.0
// A sweep as a Slurm job array: task i of n runs shard i/n on a node of its
// own.
#ifndef WEIR_PLAN_SWEEP_SLURM_H_
#define WEIR_PLAN_SWEEP_SLURM_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/processes.h"

namespace weir {

struct SlurmSweep {
  std::string program;  // weir
  std::string file;     // the sweep
  std::string folder;   // of its shards; paths are absolute, and so for nodes
  int num_nodes = 1;
  double time_limit_seconds = kNoTimeLimit;  // of a point
  std::string sbatch_args;  // further words, quoted as for a shell
  bool force = false;       // the script replaces any file
};

// Every task resumes: one that Slurm starts again after its node failed goes on
// where it was.
std::string SlurmScript(const SlurmSweep& sweep);

// Writes the script beside the shards and hands it in; returns the job's
// number. Unavailable where there is no sbatch.
absl::StatusOr<std::string> SubmitToSlurm(const SlurmSweep& sweep);

// Whether no task of the job waits or runs.
bool SlurmJobHasEnded(const std::string& job);

}  // namespace weir

#endif  // WEIR_PLAN_SWEEP_SLURM_H_
