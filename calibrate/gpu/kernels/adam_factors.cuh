// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_CALIBRATE_GPU_KERNELS_ADAM_FACTORS_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_ADAM_FACTORS_CUH_

#include <cmath>

#include "calibrate/execute/stage/stage_op.h"

namespace weir::calibrate {

// Factors of an Adam step that are the same for all parameters.
struct AdamFactors {
  float rate, beta1, beta2, epsilon, weight_decay;
  float first_correction, second_correction;  // 1 / (1 - beta^step)
  float scale;                                // factor on the gradient
};

inline AdamFactors FactorsOf(const AdamStep& adam) {
  const auto correction = [&adam](float beta) {
    return static_cast<float>(
        1 / (1 - std::pow(static_cast<double>(beta), adam.step)));
  };
  return {adam.learning_rate,     adam.beta1,         adam.beta2,
          adam.epsilon,           adam.weight_decay,  correction(adam.beta1),
          correction(adam.beta2), adam.gradient_scale};
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_ADAM_FACTORS_CUH_
