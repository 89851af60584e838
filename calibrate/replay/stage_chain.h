// SPDX-License-Identifier: Apache-2.0
// One microbatch after the other through all stages, forward and back at once:
// the passes of a training without a pipeline.
#ifndef WEIR_CALIBRATE_REPLAY_STAGE_CHAIN_H_
#define WEIR_CALIBRATE_REPLAY_STAGE_CHAIN_H_

#include <memory>
#include <vector>

#include "calibrate/reference/reference_stage.h"
#include "calibrate/replay/replay_plan.h"

namespace weir {

// [stage][element]
using StageVectors = std::vector<std::vector<double>>;

class StageChain {
 public:
  // `programs` are the plan's, or one of the whole model. With `bits` > 0 what
  // passes from stage to stage is rounded (RoundToBits).
  StageChain(const ReplayPlan& plan,
             std::vector<std::shared_ptr<const StageProgram>> programs,
             int bits = 0);

  // The mean loss of a microbatch, which counts over all steps. Its activations
  // stay for Backward.
  double Forward(int64_t microbatch, const StageVectors& weights);
  // Of the last forward, adding to gradients(). Products with weights, gains of
  // norms and the logits' table are of `weights`; activations are the forward's
  // own, which may have had others.
  void Backward(const StageVectors& weights);

  // Sums since they were last cleared.
  StageVectors& gradients() { return gradients_; }

 private:
  void RunForward(const StageProgram& program, uint64_t seed,
                  StageBuffers* buffers) const;
  // What the next, or the one before, receives.
  std::vector<double> Sent(std::vector<double> message) const;

  const ReplayPlan& plan_;
  const std::vector<std::shared_ptr<const StageProgram>> programs_;
  const int bits_;
  std::vector<StageBuffers> buffers_;  // [stage]
  StageVectors gradients_;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_STAGE_CHAIN_H_
