// SPDX-License-Identifier: Apache-2.0
// Activations that a rank moves to its host and back. Errors are those of the
// device (rank_device.h).
#ifndef WEIR_CALIBRATE_EXECUTE_RANK_OFFLOADS_H_
#define WEIR_CALIBRATE_EXECUTE_RANK_OFFLOADS_H_

#include <vector>

#include "absl/status/status.h"
#include "calibrate/execute/rank_state.h"

namespace weir::calibrate {

class RankOffloads {
 public:
  explicit RankOffloads(RankState* state) : state_(*state) {}

  absl::Status Offload(const ExecutionItem& item);
  absl::Status Reload(const ExecutionItem& item);
  // Makes the device wait for the copies to and from the host that the action
  // at `position` depends on.
  absl::Status Await(int position);
  // Frees all offloaded memory. Requires: all queued work has ended.
  absl::Status EndStep();

 private:
  struct Offloaded {
    int position = -1;
    std::vector<void*> memory;
  };
  absl::Status Release(int position);

  RankState& state_;
  std::vector<Offloaded> offloaded_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_RANK_OFFLOADS_H_
