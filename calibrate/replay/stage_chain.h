// SPDX-License-Identifier: Apache-2.0
// One microbatch after the other through all stages, forward and back at once:
// the passes of a training without a pipeline, on one rank of any device.
#ifndef WEIR_CALIBRATE_REPLAY_STAGE_CHAIN_H_
#define WEIR_CALIBRATE_REPLAY_STAGE_CHAIN_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "calibrate/replay/rank_device.h"
#include "calibrate/replay/replay_plan.h"
#include "calibrate/replay/stage_layout.h"

namespace weir {

class StageChain {
 public:
  // The device was opened for `plan`; both outlive the chain. With `bits` > 0
  // what passes from stage to stage is rounded (RoundToBits).
  StageChain(const ReplayPlan& plan, RankDevice* device, int bits = 0);

  // The mean loss of a microbatch, which counts over all steps, with weights
  // [stage]. Its activations stay for Backward.
  absl::StatusOr<double> Forward(int64_t microbatch,
                                 absl::Span<void* const> weights);
  // Of the last forward, adding to gradients [stage]. Products with weights,
  // gains of norms and the logits' table are of `weights`; activations are the
  // forward's own, which may have had others.
  absl::Status Backward(absl::Span<void* const> weights,
                        absl::Span<void* const> gradients);

 private:
  absl::StatusOr<void*> Take(int stage, int buffer);
  // All that there is of the microbatch before.
  absl::Status GiveBackAll();
  absl::Status RunPass(int stage, StagePass pass);
  // What the next, or the one before, receives: the buffer itself, or what
  // rounding makes of it.
  absl::StatusOr<void*> Sent(int stage, int buffer);

  const ReplayPlan& plan_;
  RankDevice* const device_;
  const int bits_;
  std::vector<StageLayout> layouts_;  // [stage]
  std::vector<Buffers> tables_;       // [stage]
  uint64_t seed_ = 0;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_STAGE_CHAIN_H_
