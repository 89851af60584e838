// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/one_gpu.h"

#include "absl/strings/str_cat.h"

namespace weir::calibrate {

std::vector<std::pair<std::string, std::string>> OneGpuEnvironment(int rank) {
  return {
      {"NCCL_HOSTID", absl::StrCat("weir-rank-", rank)},
      {"NCCL_NET", "Socket"},
      {"NCCL_SOCKET_IFNAME", "lo"},
      {"NCCL_IB_DISABLE", "1"},
      {"NCCL_MNNVL_ENABLE", "0"},
      {"NCCL_RAS_ENABLE", "0"},
      // Kernels of all ranks wait for each other, so they must fit at once.
      {"NCCL_MAX_CTAS", "2"},
  };
}

}  // namespace weir::calibrate
