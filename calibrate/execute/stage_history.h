// SPDX-License-Identifier: Apache-2.0
// The versions of a stage's weights, on a device, that a formula still reads.
// The formula's closed form determines them in advance. Errors are those of the
// device (rank_device.h).
#ifndef WEIR_CALIBRATE_EXECUTE_STAGE_HISTORY_H_
#define WEIR_CALIBRATE_EXECUTE_STAGE_HISTORY_H_

#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/execute/execution_plan.h"
#include "calibrate/execute/rank_device.h"
#include "calibrate/execute/stage_layout.h"
#include "calibrate/execute/update_formula.h"

namespace weir::calibrate {

class StageHistory {
 public:
  // Requires: the device was opened for `plan`; both outlive it. Without
  // `trains` only weights are allocated.
  StageHistory(const ExecutionPlan& plan, int stage, RankDevice* device,
               bool trains);

  // Uploads the initial weights. An older version or an estimate is kept from
  // its creation (with the optimizer's state of that version) until the last of
  // `num_microbatches` that reads it.
  absl::Status Begin(const UpdateFormula& formula, int num_microbatches);

  // Returns the weights of a read. InternalError: the version does not result
  // from earlier microbatches.
  absl::StatusOr<void*> At(const WeightsRead& read) const;
  void* gradients() const { return gradients_; }
  // Creates a version from the gradients, and clears them.
  absl::Status Update();
  // Releases versions no longer read after the backward of microbatches up to
  // `k`.
  absl::Status Release(int k);

  // Returns the newest weights; on a GPU, the fp32 master weights.
  absl::StatusOr<std::vector<double>> Download() const;

 private:
  struct Kept {
    int last = -1;           // microbatch that reads it
    void* memory = nullptr;  // unused for the newest version, see `newest_`
  };

  absl::StatusOr<void*> AllocateBuffer(int buffer) const;
  Buffers Table(void* weights) const;
  absl::Status TakeWhatTrains(bool by_average);
  // Computes the estimates from the newest version.
  absl::Status MakeEstimates();

  const ExecutionPlan& plan_;
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

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_STAGE_HISTORY_H_
