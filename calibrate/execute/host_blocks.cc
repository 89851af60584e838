// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/host_blocks.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace weir::calibrate {

void* HostBlocks::Allocate(int64_t num_elements) {
  std::vector<Block>& free = free_[num_elements];
  Block block;
  if (free.empty()) {
    block.resize(num_elements);
  } else {
    block = std::move(free.back());
    free.pop_back();
  }
  Poison(&block);
  void* memory = block.data();
  taken_[memory] = std::move(block);
  return memory;
}

absl::Status HostBlocks::Free(void* memory) {
  const auto at = taken_.find(memory);
  if (at == taken_.end()) {
    return absl::InternalError("memory is freed that was not allocated");
  }
  Block block = std::move(at->second);
  taken_.erase(at);
  Poison(&block);
  free_[static_cast<int64_t>(block.size())].push_back(std::move(block));
  return absl::OkStatus();
}

void HostBlocks::Poison(Block* block) {
  std::fill(block->begin(), block->end(),
            std::numeric_limits<double>::quiet_NaN());
}

}  // namespace weir::calibrate
