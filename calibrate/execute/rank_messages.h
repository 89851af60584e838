// SPDX-License-Identifier: Apache-2.0
// Activations and gradients that a rank sends to other ranks and receives.
// Errors are those of the device (rank_device.h).
#ifndef WEIR_CALIBRATE_EXECUTE_RANK_MESSAGES_H_
#define WEIR_CALIBRATE_EXECUTE_RANK_MESSAGES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "calibrate/execute/rank_state.h"

namespace weir::calibrate {

class RankMessages {
 public:
  explicit RankMessages(RankState* state) : state_(*state) {}

  void BeginStep() { transfers_.clear(); }
  // Returns which message the action waits for; empty if all are posted.
  // Requires: the board's mutex is held.
  std::string Missing(const schedules::Action& action) const;
  // Makes the device wait for the action's messages. Requires: all are posted.
  absl::Status Await(const schedules::Action& action);
  // Allocates receive buffers.
  absl::Status AllocateReceives(const std::vector<MessageKey>& keys);
  // Frees own messages that have arrived.
  absl::Status FreeArrived(const std::vector<MessageKey>& keys);
  // Sends what the action computed to the ranks of the next stage.
  absl::Status Send(const schedules::Action& action, const RankEventPtr& start,
                    const RankEventPtr& end);
  // Adds the transfers to the record and frees all messages. Requires: all
  // queued work has ended.
  absl::Status EndStep(StepRecord* record);

 private:
  struct PendingTransfer {
    TransferRecord record;
    RankEventPtr ready;
    CopyEvents copy;
  };
  absl::Status SendTo(int to_rank, const schedules::Action& action,
                      const std::vector<int>& microbatches,
                      const RankEventPtr& end);

  RankState& state_;
  std::vector<PendingTransfer> transfers_;
  std::map<std::pair<bool, std::pair<int, int>>, void*> sent_;  // by message
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_RANK_MESSAGES_H_
