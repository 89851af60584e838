// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/optimizer_step.h"

namespace weir::sim {

bool WidensGradients(const Runtime& runtime, const Training& training) {
  return runtime.widens_gradients() && training.precision() != FP32 &&
         !training.fp32_gradients();
}

double OptimizerStepBytes(const StageParameters& parameters,
                          const Training& training, const Runtime& runtime,
                          int num_versions) {
  const bool has_master_weights = training.precision() != FP32;
  const bool widens = WidensGradients(runtime, training);
  // The gradients that the norm, the loss scale and the optimizer work on.
  const double gradients =
      widens ? parameters.fp32_bytes : parameters.gradient_bytes;
  double bytes = gradients + 2 * parameters.optimizer_state_bytes +
                 (has_master_weights ? 1 : 2) * parameters.written_bytes();
  if (widens) bytes += parameters.gradient_bytes + gradients;
  if (runtime.unscales_gradients() && training.precision() == MIXED_FP16) {
    bytes += 2 * gradients;
  }
  if (runtime.measures_gradient_norm()) bytes += gradients;
  if (runtime.scales_gradients()) bytes += 2 * gradients;
  if (runtime.clears_gradients()) bytes += parameters.gradient_bytes;
  if (runtime.copies_master_weights() && has_master_weights) {
    bytes += parameters.fp32_bytes;
  }
  if (num_versions > 1 && !runtime.writes_new_versions()) {
    bytes += 2 * parameters.stash_bytes;
  }
  return bytes;
}

}  // namespace weir::sim
