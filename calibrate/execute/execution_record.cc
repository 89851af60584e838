// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/execution_record.h"

#include <iterator>

namespace weir::calibrate {

const char* Name(ExecutionMemory memory) {
  static constexpr const char* kNames[] = {
      "weights",         "weight_stash",          "gradients",
      "optimizer_state", "activations",           "weight_gradient_stash",
      "pass_scratch",    "communication_buffers", "predicted_weights",
      "estimate_buffers"};
  static_assert(std::size(kNames) == kNumExecutionMemories);
  return kNames[static_cast<int>(memory)];
}

}  // namespace weir::calibrate
