// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nudge.h"

namespace weir {

void NudgeRates(std::mt19937* random, Cluster* cluster) {
  const auto nudge = [random](double x) {
    return x * (1 + 1e-13 * std::uniform_real_distribution<>(-1, 1)(*random));
  };
  for (NodeGroup& group : *cluster->mutable_groups()) {
    Node* node = group.mutable_node();
    for (Nic& nic : *node->mutable_nics()) {
      nic.set_bytes_per_second(nudge(nic.bytes_per_second()));
    }
    if (!node->has_pcie()) continue;
    PcieTree* pcie = node->mutable_pcie();
    pcie->set_uplink_bytes_per_second(nudge(pcie->uplink_bytes_per_second()));
    pcie->set_gpu_bytes_per_second(nudge(pcie->gpu_bytes_per_second()));
    pcie->set_socket_bytes_per_second(nudge(pcie->socket_bytes_per_second()));
    pcie->set_latency_seconds(nudge(pcie->latency_seconds()));
  }
  Fabric* fabric = cluster->mutable_fabric();
  fabric->set_latency_seconds(nudge(fabric->latency_seconds()));
}

}  // namespace weir
