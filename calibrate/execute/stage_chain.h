// SPDX-License-Identifier: Apache-2.0
// Runs each microbatch through all stages forward and directly backward: the
// passes of a training without a pipeline, on one rank of any device. Errors
// are those of the device (rank_device.h).
#ifndef WEIR_CALIBRATE_EXECUTE_STAGE_CHAIN_H_
#define WEIR_CALIBRATE_EXECUTE_STAGE_CHAIN_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "calibrate/execute/execution_plan.h"
#include "calibrate/execute/rank_device.h"
#include "calibrate/execute/stage_layout.h"

namespace weir::calibrate {

class StageChain {
 public:
  // Requires: the device was opened for `plan`; both outlive the chain. With
  // `bits` > 0 tensors between stages are rounded (RoundToBits).
  StageChain(const ExecutionPlan& plan, RankDevice* device, int bits = 0);

  // Returns the mean loss of a microbatch, numbered over all steps, with
  // weights [stage]. Keeps its activations for Backward().
  absl::StatusOr<double> Forward(int64_t microbatch,
                                 absl::Span<void* const> weights);
  // Runs the backward of the last forward and adds to gradients [stage]. GEMMs
  // with weights, gains of norms and the logits' table use `weights`;
  // activations are those of the forward, which may have used other weights.
  absl::Status Backward(absl::Span<void* const> weights,
                        absl::Span<void* const> gradients);

 private:
  absl::StatusOr<void*> AllocateBuffer(int stage, int buffer);
  // Frees all buffers of the previous microbatch.
  absl::Status FreeAll();
  absl::Status RunPass(int stage, ProgramPass pass);
  // Returns what the next or previous stage receives: the buffer itself, or its
  // rounded copy.
  absl::StatusOr<void*> Sent(int stage, int buffer);

  const ExecutionPlan& plan_;
  RankDevice* const device_;
  const int bits_;
  std::vector<StageLayout> layouts_;  // [stage]
  std::vector<Buffers> tables_;       // [stage]
  uint64_t seed_ = 0;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_STAGE_CHAIN_H_
