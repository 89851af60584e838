// SPDX-License-Identifier: Apache-2.0
// Memory of the host back end.
#ifndef WEIR_CALIBRATE_EXECUTE_HOST_BLOCKS_H_
#define WEIR_CALIBRATE_EXECUTE_HOST_BLOCKS_H_

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"

namespace weir::calibrate {

// Blocks of doubles. Values that were not written, or were freed, are NaN.
class HostBlocks {
 public:
  // Returns a block of `num_elements` doubles, a freed one if possible.
  void* Allocate(int64_t num_elements);

  // Frees a block. Returns Internal if it is not allocated.
  absl::Status Free(void* memory);

 private:
  using Block = std::vector<double>;
  static void Poison(Block* block);

  std::unordered_map<void*, Block> taken_;
  std::map<int64_t, std::vector<Block>> free_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_HOST_BLOCKS_H_
