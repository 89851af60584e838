// SPDX-License-Identifier: Apache-2.0
// NCCL between several processes on one GPU: runs everything without a cluster,
// at the speed of loopback sockets.
#ifndef WEIR_CALIBRATE_FABRIC_ONE_GPU_H_
#define WEIR_CALIBRATE_FABRIC_ONE_GPU_H_

#include <string>
#include <utility>
#include <vector>

namespace weir::calibrate {

// Returns environment variables that must be set before NCCL starts. NCCL
// refuses two ranks with one GPU on one host, so every rank claims to be a
// separate host (NCCL v2.28.9 src/init.cc: the host's hash comes from
// NCCL_HOSTID). Hosts communicate by sockets, which are configured to be local.
std::vector<std::pair<std::string, std::string>> OneGpuEnvironment(int rank);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_ONE_GPU_H_
