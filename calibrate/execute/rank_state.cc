// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/rank_state.h"

#include "base/status_macros.h"

namespace weir::calibrate {

absl::Status RankState::FreeDeadVersions(RankStage* stage,
                                         const RankEventPtr& at) {
  const auto bytes =
      static_cast<double>(stage->layout.buffer(stage->layout.weights).bytes());
  for (void* dead : stage->versions->TakeDead()) {
    RETURN_IF_ERROR(memory.Free(dead));
    log.Add(at, MemoryClass::WEIGHT_STASH, -bytes);
  }
  return absl::OkStatus();
}

}  // namespace weir::calibrate
