// SPDX-License-Identifier: Apache-2.0
// Training kernels that are not operations of a stage. As in kernels.h, they
// launch on `stream` and return at once, `half` is the launch's format, and all
// pointers are 16-byte aligned.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_TRAINING_KERNELS_H_
#define WEIR_CALIBRATE_GPU_KERNELS_TRAINING_KERNELS_H_

#include "calibrate/gpu/kernels/kernels.h"

namespace weir::calibrate {

// velocity = momentum velocity + g; master -= learning_rate (velocity_weight
// velocity + gradient_weight g), g = gradient_scale gradient; weight half =
// master; gradient = 0. SGD: momentum 0, velocity_weight 0 and gradient_weight
// 1.
struct MomentumStep {
  float learning_rate = 0.05F, momentum = 0.9F;
  float velocity_weight = 1, gradient_weight = 0;
  float gradient_scale = 1;
};
cudaError_t LaunchMomentum(const Launch& launch, const MomentumStep& step,
                           float* gradient, float* master, float* velocity,
                           void* weight, int64_t num_elements);

// Computes estimate half = weight half - far velocity. The negative average of
// updates also serves as a velocity. `estimate` may be `weight`.
cudaError_t LaunchEstimateByVelocity(const Launch& launch, const void* weight,
                                     const float* velocity, float far,
                                     void* estimate, int64_t num_elements);
// Computes estimate = weight - far (m / (sqrt(v) + epsilon) + weight_decay
// weight), with both moments bias corrected for adam.step.
cudaError_t LaunchEstimateByAdam(const Launch& launch, const AdamStep& adam,
                                 const void* weight, const float* first,
                                 const float* second, float far, void* estimate,
                                 int64_t num_elements);
// Computes average fp32 = decay average + (1 - decay) (now - before), both
// halves.
cudaError_t LaunchMoveAverage(const Launch& launch, const void* before,
                              const void* now, float decay, float* average,
                              int64_t num_elements);

// Computes sum += addend, fp32.
cudaError_t LaunchAdd(const Launch& launch, const float* addend, float* sum,
                      int64_t num_elements);

// Rounds each half to the nearest of 2^bits - 1 equally spaced, symmetric
// values that extend to the largest magnitude. `into` may be `from`. Uses the
// launch's workspace.
inline constexpr int kRoundWorkspaceBytes = 16;
cudaError_t LaunchRoundToBits(const Launch& launch, int bits, const void* from,
                              void* into, int64_t num_elements);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_TRAINING_KERNELS_H_
