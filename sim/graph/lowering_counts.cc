// SPDX-License-Identifier: Apache-2.0
// The number of communicators of each GPU.
#include <algorithm>
#include <set>
#include <utility>

#include "sim/graph/communication_lowering.h"

namespace weir::sim {

std::vector<calibrate::CommunicatorCounts>
CommunicationLowering::CountCommunicators() const {
  std::vector<calibrate::CommunicatorCounts> counts(network_.num_gpus());
  for (const auto& [gpus, index] : communicator_index_) {
    if (gpus.size() < 2) continue;
    const Communicator& communicator = communicators_[index];
    for (int gpu : gpus) {
      calibrate::CommunicatorCounts& count = counts[gpu];
      if (communicator.collectives) {
        ++(communicator.across_nodes ? count.num_across_nodes
                                     : count.num_in_node);
        count.num_nvls += communicator.nvls;
      }
      if (communicator.pairs) {
        count.num_pair_peers += static_cast<int>(gpus.size()) - 1;
      }
    }
  }
  std::set<std::pair<int, int>> peers;
  for (const auto& [from, to] : sends_) {
    if (from >= 0) peers.insert({std::min(from, to), std::max(from, to)});
  }
  for (const auto& [one, other] : peers) {
    ++counts[one].num_pair_peers;
    ++counts[other].num_pair_peers;
  }
  return counts;
}

}  // namespace weir::sim
