// SPDX-License-Identifier: Apache-2.0
// Which rank this process is, from what its launcher left in the environment,
// and where rank 0 can be met. No MPI is linked.
#ifndef WEIR_CALIBRATE_NETWORK_LAUNCH_H_
#define WEIR_CALIBRATE_NETWORK_LAUNCH_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// Null where there is no such variable.
using Environment = std::function<const char*(const char* name)>;

struct RankLaunch {
  std::string launcher = "none";  // "torchrun", "Open MPI", "PMI", "Slurm"
  int rank = 0;
  int num_ranks = 1;
  int local_rank = -1;  // -1: not said
  int num_local = -1;   // ranks in this node; -1: not said
  std::string node;     // the launcher's name of it, or the host's
  // Slurm's, "spine.leaf.node" and "switch.switch.node"; empty: not said.
  std::string topology_address;
  std::string topology_pattern;
};

// One rank where nothing launched. Slurm counts only where no other launcher
// speaks: srun and sbatch start the others. InvalidArgument names every
// variable that is missing, no number, or against another.
absl::StatusOr<RankLaunch> ReadLaunch(const Environment& environment);

// Where rank 0 listens and what proves that a rank is one of us.
struct Rendezvous {
  std::string file;                // of --rendezvous; empty: none
  std::vector<std::string> hosts;  // of rank 0, to be tried in turn
  std::vector<int> ports;          // rank 0 takes the first free one
  bool all_local = false;          // all ranks are in one node
  std::string token;               // with a file: rank 0 makes it
};

// What a command prints; tests give another.
using RunProgram = std::function<absl::StatusOr<std::string>(
    const std::vector<std::string>& command)>;
absl::StatusOr<std::string> RunAndRead(const std::vector<std::string>& command);

// By `file`, else MASTER_ADDR and MASTER_PORT, else the loopback interface
// where all ranks are in one node, else Slurm's list of nodes, else mpirun's
// address. The token is WEIR_NETWORK_TOKEN, or else made of the job's
// variables: this keeps out ranks of other jobs, but not somebody who can guess
// them. InvalidArgument names what to set where nothing helps. REQUIRES:
// num_ranks > 1.
absl::StatusOr<Rendezvous> FindRendezvous(const RankLaunch& launch,
                                          const std::string& file,
                                          const Environment& environment,
                                          const RunProgram& run);

}  // namespace weir

#endif  // WEIR_CALIBRATE_NETWORK_LAUNCH_H_
