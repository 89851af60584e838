// SPDX-License-Identifier: Apache-2.0
// NCCL between several processes on one GPU: a way to run everything without a
// cluster, at the speed of loopback sockets.
#ifndef WEIR_CALIBRATE_NETWORK_ONE_GPU_H_
#define WEIR_CALIBRATE_NETWORK_ONE_GPU_H_

#include <string>
#include <utility>
#include <vector>

namespace weir {

// Environment variables and values that NCCL must find before it starts. It
// refuses two ranks with one GPU on one host, so every rank says it is a host
// of its own (NCCL v2.28.9 src/init.cc: the host's hash comes from
// NCCL_HOSTID); hosts reach each other by sockets, which are told to be local.
std::vector<std::pair<std::string, std::string>> OneGpuEnvironment(int rank);

}  // namespace weir

#endif  // WEIR_CALIBRATE_NETWORK_ONE_GPU_H_
