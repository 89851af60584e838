// SPDX-License-Identifier: Apache-2.0
// What a stage was and is, on a device: the weights that a formula still asks
// for. Which those are is known beforehand, from its closed form alone.
#ifndef WEIR_CALIBRATE_REPLAY_STAGE_HISTORY_H_
#define WEIR_CALIBRATE_REPLAY_STAGE_HISTORY_H_

#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/replay/rank_device.h"
#include "calibrate/replay/replay_plan.h"
#include "calibrate/replay/stage_layout.h"
#include "calibrate/replay/update_formula.h"

namespace weir {

class StageHistory {
 public:
  // The device was opened for `plan`; both outlive it. Without `trains` there
  // are weights alone.
  StageHistory(const ReplayPlan& plan, int stage, RankDevice* device,
               bool trains);

  // The initial weights. An older version, or an estimate, is kept from when it
  // is made (the optimizer's state is then its own) until the last of
  // `num_microbatches` that reads it.
  absl::Status Begin(const UpdateFormula& formula, int num_microbatches);

  // InternalError: microbatches before this one do not make that version.
  absl::StatusOr<void*> At(const WeightsRead& read) const;
  void* gradients() const { return gradients_; }
  // A version from the gradients, which it clears.
  absl::Status Update();
  // Microbatches up to `k` have gone back.
  absl::Status Release(int k);

  // The newest; of a GPU the fp32 master weights.
  absl::StatusOr<std::vector<double>> Download() const;

 private:
  struct Kept {
    int last = -1;           // microbatch that reads it
    void* memory = nullptr;  // of the newest version `newest_` instead
  };

  absl::StatusOr<void*> Take(int buffer) const;
  Buffers Table(void* weights) const;
  absl::Status TakeWhatTrains(bool by_average);
  // Of the newest version.
  absl::Status MakeEstimates();

  const ReplayPlan& plan_;
  const int stage_;
  RankDevice* const device_;
  const bool trains_;
  const StageLayout layout_;

  int version_ = 0, released_ = -1;
  std::map<std::pair<int, double>, Kept> kept_;  // by version, distance
  void* newest_ = nullptr;
  void *gradients_ = nullptr, *state_ = nullptr;
  void* average_ = nullptr;  // null: estimates are the optimizer's
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_STAGE_HISTORY_H_
