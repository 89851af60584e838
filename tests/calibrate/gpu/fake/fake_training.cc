// SPDX-License-Identifier: Apache-2.0
// The launchers of training_kernels.h, in double precision.
#include <cmath>
#include <vector>

#include "calibrate/gpu/host/host_tensor.h"
#include "calibrate/gpu/kernels/training_kernels.h"
#include "tests/calibrate/gpu/fake/fake.h"

namespace weir::calibrate {
namespace {

using fake::Reads;
using fake::Writes;

double HalfAt(const Launch& launch, const void* data, int64_t i) {
  return ReadElement(launch.format, static_cast<const uint8_t*>(data) +
                                        i * BytesOf(launch.format));
}
void SetHalf(const Launch& launch, void* data, int64_t i, double value) {
  WriteElement(launch.format, value,
               static_cast<uint8_t*>(data) + i * BytesOf(launch.format));
}

// Runs `element` for each element.
cudaError_t Run(const Launch& launch, int64_t num_elements,
                std::function<void(int64_t)> element, fake::Accesses accesses) {
  Enqueue(
      launch.stream, Gpu().kernel_seconds,
      [num_elements, element = std::move(element)] {
        for (int64_t i = 0; i < num_elements; ++i) element(i);
      },
      std::move(accesses));
  return cudaSuccess;
}

}  // namespace

cudaError_t LaunchMomentum(const Launch& launch, const MomentumStep& step,
                           float* gradient, float* master, float* velocity,
                           void* weight, int64_t n) {
  const auto element = [=](int64_t i) {
    const double g = double{step.gradient_scale} * gradient[i];
    const double v = double{step.momentum} * velocity[i] + g;
    master[i] = static_cast<float>(
        master[i] - double{step.learning_rate} *
                        (step.velocity_weight * v + step.gradient_weight * g));
    velocity[i] = static_cast<float>(v);
    SetHalf(launch, weight, i, master[i]);
    gradient[i] = 0;
  };
  return Run(launch, n, element,
             {Writes(gradient, 4 * n), Writes(master, 4 * n),
              Writes(velocity, 4 * n), Writes(weight, 2 * n)});
}

cudaError_t LaunchEstimateByVelocity(const Launch& launch, const void* weight,
                                     const float* velocity, float far,
                                     void* estimate, int64_t n) {
  const auto element = [=](int64_t i) {
    SetHalf(launch, estimate, i,
            HalfAt(launch, weight, i) - double{far} * velocity[i]);
  };
  return Run(
      launch, n, element,
      {Reads(weight, 2 * n), Reads(velocity, 4 * n), Writes(estimate, 2 * n)});
}

cudaError_t LaunchEstimateByAdam(const Launch& launch, const AdamStep& adam,
                                 const void* weight, const float* first,
                                 const float* second, float far, void* estimate,
                                 int64_t n) {
  const double correction1 = 1 - std::pow(double{adam.beta1}, adam.step);
  const double correction2 = 1 - std::pow(double{adam.beta2}, adam.step);
  const auto element = [=](int64_t i) {
    const double w = HalfAt(launch, weight, i);
    const double direction =
        first[i] / correction1 /
        (std::sqrt(second[i] / correction2) + adam.epsilon);
    SetHalf(launch, estimate, i,
            w - far * (direction + double{adam.weight_decay} * w));
  };
  return Run(launch, n, element,
             {Reads(weight, 2 * n), Reads(first, 4 * n), Reads(second, 4 * n),
              Writes(estimate, 2 * n)});
}

cudaError_t LaunchMoveAverage(const Launch& launch, const void* before,
                              const void* now, float decay, float* average,
                              int64_t n) {
  const auto element = [=](int64_t i) {
    average[i] =
        static_cast<float>(double{decay} * average[i] +
                           (1 - double{decay}) * (HalfAt(launch, now, i) -
                                                  HalfAt(launch, before, i)));
  };
  return Run(launch, n, element,
             {Reads(before, 2 * n), Reads(now, 2 * n), Writes(average, 4 * n)});
}

cudaError_t LaunchAdd(const Launch& launch, const float* addend, float* sum,
                      int64_t n) {
  return Run(launch, n, [=](int64_t i) { sum[i] += addend[i]; },
             {Reads(addend, 4 * n), Writes(sum, 4 * n)});
}

cudaError_t LaunchRoundToBits(const Launch& launch, int bits, const void* from,
                              void* into, int64_t n) {
  if (launch.workspace_bytes < kRoundWorkspaceBytes) {
    return cudaErrorInvalidValue;
  }
  const double levels = std::ldexp(1.0, bits - 1) - 1;
  Enqueue(launch.stream, 3 * Gpu().kernel_seconds,
          [=] {
            double largest = 0;
            for (int64_t i = 0; i < n; ++i) {
              largest = std::max(largest, std::abs(HalfAt(launch, from, i)));
            }
            for (int64_t i = 0; i < n; ++i) {
              const double x = HalfAt(launch, from, i);
              SetHalf(launch, into, i,
                      largest > 0 ? std::nearbyint(x / largest * levels) /
                                        levels * largest
                                  : x);
            }
          },
          {Reads(from, 2 * n), Writes(into, 2 * n),
           Writes(launch.workspace, kRoundWorkspaceBytes)});
  return cudaSuccess;
}

}  // namespace weir::calibrate
