// SPDX-License-Identifier: Apache-2.0
// One rank of a replay: its items in order. The caller queries what an item
// waits for; running an item never waits for another rank. Errors are those of
// the device (rank_device.h).
#ifndef WEIR_CALIBRATE_EXECUTE_RANK_RUNNER_H_
#define WEIR_CALIBRATE_EXECUTE_RANK_RUNNER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/execute/gradient_sums.h"
#include "calibrate/execute/rank_messages.h"
#include "calibrate/execute/rank_offloads.h"
#include "calibrate/execute/rank_passes.h"
#include "calibrate/execute/rank_state.h"
#include "calibrate/execute/rank_updates.h"

namespace weir::calibrate {

class RankRunner {
 public:
  RankRunner(const ExecutionShared& shared, int rank);
  RankRunner(const RankRunner&) = delete;
  RankRunner& operator=(const RankRunner&) = delete;

  // Allocates weights, gradients, states and the memory for predictions.
  absl::Status Prepare();
  // Prepares data and the first receive buffers of a step. The caller then
  // starts the clock.
  absl::Status BeginStep(int step, StepRecord* record);

  int num_items() const { return static_cast<int>(items_.size()); }
  // Returns what the item waits for; empty if it can run. Requires: the board's
  // mutex is held.
  std::string Missing(int item) const;
  // Queues the item. Errors name rank and action.
  absl::Status Do(int item);

  // Returns how many items have ended on the device; never waits.
  int NumEnded();
  std::string TextOf(int item) const {
    return ItemText(state_.plan(), state_.shared.order, state_.rank,
                    items_[item]);
  }
  // "rank 2 waits in 2F3 (position 7) for the activations of 1F3 from rank 1"
  std::string WaitText(int item, const std::string& missing) const;
  int num_done() const { return static_cast<int>(ends_.size()); }

  // Records times, memory and losses. Requires: all queued work has ended.
  absl::Status EndStep(StepRecord* record);
  absl::Status FreeAll() { return state_.memory.FreeAll(); }
  absl::StatusOr<std::vector<double>> NewestWeights(int stage);

 private:
  absl::Status Annotate(const absl::Status& status, int item) const;
  absl::Status RecordLosses(StepRecord* record);

  // rank_stages.cc
  absl::Status PrepareStage(RankStage* stage);
  absl::Status BeginStage(RankStage* stage, int step);
  void MarkLastOfVersions();

  RankState state_;
  RankMessages messages_{&state_};
  RankOffloads offloads_{&state_};
  RankPasses passes_{&state_, &messages_, &offloads_};
  RankUpdates updates_{&state_};
  GradientSums sums_{&state_};
  const std::vector<ExecutionItem>& items_;
  std::vector<RankEventPtr> ends_;  // [item]
  int num_ended_ = 0;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_RANK_RUNNER_H_
