// SPDX-License-Identifier: Apache-2.0
// Summaries of all groups and sends of a run: the GPUs that flows slow down,
// and the number of communicators of each GPU.
#include <algorithm>
#include <set>
#include <utility>

#include "sim/graph/communication_lowering.h"
#include "sim/graph/symmetry.h"

namespace weir::sim {

std::vector<Slowdowns::Touch> CommunicationLowering::Touches() const {
  const int num_gpus = network_.num_gpus();
  std::vector<Slowdowns::Touch> touches;
  for (int32_t color : pair_colors_) {
    touches.push_back(symmetry_->color(color).touch);
  }
  if (symmetry_ != nullptr) return touches;
  for (const GpuPair& pair : tasks_->pairs) {
    Slowdowns::Touch& touch = touches.emplace_back();
    for (int host : {pair.from, pair.to}) {
      if (host / num_gpus == 1) {
        touch.mover = Mover::kCopies;  // the other end is the host's memory
      } else {
        touch.gpus.push_back(host % num_gpus);
      }
    }
  }
  // The remaining hop represents all hops, so that it touches all their GPUs.
  for (size_t s : merged_hop_sets_) {
    std::vector<int32_t>& gpus = touches[hop_sets_[s].hops[0]].gpus;
    for (int32_t hop : hop_sets_[s].hops) {
      for (int host : {tasks_->pairs[hop].from, tasks_->pairs[hop].to}) {
        gpus.push_back(host % num_gpus);
      }
    }
    std::sort(gpus.begin(), gpus.end());
    gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  }
  return touches;
}

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
