// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "calibrate/gpu/kernels/launch.cuh"
#include "calibrate/gpu/kernels/training.cuh"
#include "calibrate/gpu/kernels/training_kernels.h"

namespace weir::calibrate {
cudaError_t LaunchMomentum(const Launch& launch, const MomentumStep& step,
                           float* gradient, float* master, float* velocity,
                           void* weight, int64_t num_elements) {
  const MomentumFactors factors = {step.learning_rate, step.momentum,
                                   step.velocity_weight, step.gradient_weight,
                                   step.gradient_scale};
  return WithHalf(launch.format, [&](auto half) {
    using Half = decltype(half);
    return Start(launch, Momentum<Half>, BlocksFor(num_elements, 4), kThreads,
                 0, gradient, master, velocity, static_cast<Half*>(weight),
                 factors, num_elements);
  });
}

cudaError_t LaunchEstimateByVelocity(const Launch& launch, const void* weight,
                                     const float* velocity, float far,
                                     void* estimate, int64_t num_elements) {
  return WithHalf(launch.format, [&](auto half) {
    using Half = decltype(half);
    return Start(launch, EstimateByVelocity<Half>,
                 BlocksFor(num_elements, kVector), kThreads, 0,
                 static_cast<const Half*>(weight), velocity,
                 static_cast<Half*>(estimate), far, num_elements);
  });
}

cudaError_t LaunchEstimateByAdam(const Launch& launch, const AdamStep& adam,
                                 const void* weight, const float* first,
                                 const float* second, float far, void* estimate,
                                 int64_t num_elements) {
  return WithHalf(launch.format, [&](auto half) {
    using Half = decltype(half);
    return Start(launch, EstimateByAdam<Half>, BlocksFor(num_elements, kVector),
                 kThreads, 0, static_cast<const Half*>(weight), first, second,
                 static_cast<Half*>(estimate), FactorsOf(adam), far,
                 num_elements);
  });
}

cudaError_t LaunchMoveAverage(const Launch& launch, const void* before,
                              const void* now, float decay, float* average,
                              int64_t num_elements) {
  return WithHalf(launch.format, [&](auto half) {
    using Half = decltype(half);
    return Start(launch, MoveAverage<Half>, BlocksFor(num_elements, kVector),
                 kThreads, 0, static_cast<const Half*>(before),
                 static_cast<const Half*>(now), average, decay, num_elements);
  });
}

cudaError_t LaunchAdd(const Launch& launch, const float* addend, float* sum,
                      int64_t num_elements) {
  return Start(launch, AddTo, BlocksFor(num_elements, 4), kThreads, 0, addend,
               sum, num_elements);
}

cudaError_t LaunchRoundToBits(const Launch& launch, int bits, const void* from,
                              void* into, int64_t num_elements) {
  if (launch.workspace_bytes < kRoundWorkspaceBytes) {
    return cudaErrorInvalidValue;
  }
  auto* largest = static_cast<unsigned*>(launch.workspace);
  const auto levels = static_cast<float>(std::ldexp(1.0, bits - 1) - 1);
  const int64_t blocks = BlocksFor(num_elements, kVector);
  const cudaError_t cleared =
      Start(launch, BeginLargest, 1, kWarpSize, 0, largest);
  if (cleared != cudaSuccess) return cleared;
  return WithHalf(launch.format, [&](auto half) {
    using Half = decltype(half);
    const cudaError_t found =
        Start(launch, LargestMagnitude<Half>, blocks, kThreads,
              ScratchBytes(kThreads, 1), static_cast<const Half*>(from),
              largest, num_elements);
    if (found != cudaSuccess) return found;
    return Start(launch, RoundToLevels<Half>, blocks, kThreads, 0,
                 static_cast<const Half*>(from), static_cast<Half*>(into),
                 static_cast<const unsigned*>(largest), levels, num_elements);
  });
}

}  // namespace weir::calibrate
