// SPDX-License-Identifier: Apache-2.0
// weir-calibrate network: measures messages between the GPUs of a cluster.
#ifndef WEIR_CALIBRATE_FABRIC_COMMAND_H_
#define WEIR_CALIBRATE_FABRIC_COMMAND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/fabric/transport.h"

namespace weir::calibrate {

struct NetworkFlags {
  std::string out;    // profile to write; required
  std::string start;  // preset or file with all other parameters; required
  int pairs_per_class = 8;      // sampled, of every link class
  double max_bytes = 1 << 28;   // largest message
  double timeout_seconds = 60;  // for a rendezvous, an operation, a silence
  std::string topology;  // file of leaves and their nodes; empty: use Slurm's
  // File visible to all ranks; empty: use the launcher's variables.
  std::string rendezvous;
  // Ranks of collectives; empty: 2, 4, 8, ... up to all.
  std::vector<int> groups;
  uint64_t seed = 1;     // selects the sampled pairs
  bool force = false;    // --out replaces a file that weir did not write
  bool one_gpu = false;  // several ranks share a GPU: functional check only
  std::string command;   // as typed, for the provenance
  std::string weir_version;
  // Print a message to standard error; required. Called by any thread.
  std::function<void(absl::string_view)> print_error, print_warning;
};

// Parameters of a rank's transport.
struct TransportRequest {
  int rank = 0;
  int num_ranks = 1;
  int local_rank = 0;  // index among its node's GPUs
  bool one_gpu = false;
  double timeout_seconds = 60;
};

// Creates a transport. Returns Unavailable (exit code 3) if this machine lacks
// a requirement (a driver, a GPU).
using TransportFactory =
    std::function<absl::StatusOr<std::unique_ptr<Transport>>(
        const TransportRequest& request)>;

// Runs this process's part; every rank calls it. Rank 0 prints tables on stdout
// and writes the profile, to OUT.partial until it is complete; errors go to
// stderr, once. Returns the exit code: 0; 1 a rank died, hung or never
// connected; 2 flags, files or launch variables; 3 something is missing on this
// machine; 70 a bug.
int RunNetworkCommand(const NetworkFlags& flags,
                      const TransportFactory& make_transport);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_COMMAND_H_
