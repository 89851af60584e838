// SPDX-License-Identifier: Apache-2.0
// Optimizer steps of a rank. Errors are those of the device (rank_device.h).
#ifndef WEIR_CALIBRATE_EXECUTE_RANK_UPDATES_H_
#define WEIR_CALIBRATE_EXECUTE_RANK_UPDATES_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "calibrate/execute/rank_state.h"

namespace weir::calibrate {

class RankUpdates {
 public:
  explicit RankUpdates(RankState* state) : state_(*state) {}

  void BeginStep() { updates_.clear(); }
  absl::Status Run(const ExecutionItem& item);
  // Returns the updates of the step; their times are not set.
  const std::vector<std::pair<UpdateRecord, WorkEvents>>& updates() const {
    return updates_;
  }

 private:
  RankState& state_;
  std::vector<std::pair<UpdateRecord, WorkEvents>> updates_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_RANK_UPDATES_H_
