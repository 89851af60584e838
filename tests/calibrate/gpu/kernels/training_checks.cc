// SPDX-License-Identifier: Apache-2.0
// Compares the kernels of training_kernels.h with their formulas.
#include <algorithm>
#include <cmath>
#include <random>

#include "calibrate/gpu/kernels/training_kernels.h"
#include "tests/calibrate/gpu/kernels/other_checks.h"

namespace weir::calibrate {
namespace {

using Errors = absl::StatusOr<std::vector<OutputError>>;
constexpr ElementFormat kHalf = ElementFormat::kBf16;
constexpr ElementFormat kFloat = ElementFormat::kFp32;
constexpr int64_t kNumTrained = 20003;  // the last thread has fewer elements
constexpr double kHalfBound = 2.5e-3, kFloatBound = 1e-6;

// A tensor on the device and its exact values on the host.
struct TrainingTensor {
  ElementFormat format;
  std::vector<double> values;  // a check replaces these by the expected values
  void* data = nullptr;
};

TrainingTensor Make(TestDevice* device, ElementFormat format, uint64_t seed,
                    double low = -1e9) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(kNumTrained);
  for (double& x : values) x = std::max(normal(random), low);
  const std::vector<uint8_t> bytes = Encode(format, values);
  return {format, Decode(format, bytes), device->Upload(bytes)};
}

Errors Check(
    TestDevice* device, cudaError_t launched,
    const std::vector<std::pair<std::string, TrainingTensor>>& tensors) {
  if (launched != cudaSuccess) return LaunchStatus(launched);
  std::vector<OutputError> errors;
  for (const auto& [name, tensor] : tensors) {
    auto bytes = device->Download(tensor.data);
    if (!bytes.ok()) return bytes.status();
    errors.push_back(
        {name, NormwiseError(Decode(tensor.format, *bytes), tensor.values),
         tensor.format == kHalf ? kHalfBound : kFloatBound});
  }
  return errors;
}

Launch LaunchOn(TestDevice* device) {
  Launch launch;
  launch.format = kHalf;
  launch.num_multiprocessors = device->num_multiprocessors();
  return launch;
}

Errors Momentum(TestDevice* device) {
  TrainingTensor g = Make(device, kFloat, 1), w = Make(device, kFloat, 2),
                 v = Make(device, kFloat, 3), half = Make(device, kHalf, 4);
  const MomentumStep step = {0.5F, 0.75F, 0.25F, 2, 0.125F};
  const cudaError_t launched =
      LaunchMomentum(LaunchOn(device), step, static_cast<float*>(g.data),
                     static_cast<float*>(w.data), static_cast<float*>(v.data),
                     half.data, kNumTrained);
  for (int64_t i = 0; i < kNumTrained; ++i) {
    const double gradient = 0.125 * g.values[i];
    v.values[i] = 0.75 * v.values[i] + gradient;
    w.values[i] -= 0.5 * (0.25 * v.values[i] + 2 * gradient);
    half.values[i] = w.values[i];
    g.values[i] = 0;
  }
  Errors errors = Check(device, launched,
                        {{"master", w}, {"velocity", v}, {"weight", half}});
  auto left = device->Download(g.data);
  if (!errors.ok() || !left.ok()) return errors;
  const bool cleared = std::all_of(left->begin(), left->end(),
                                   [](uint8_t byte) { return byte == 0; });
  errors->push_back({"gradient is left", cleared ? 0.0 : 1.0, 0});
  return errors;
}

Errors ByVelocity(TestDevice* device) {
  TrainingTensor w = Make(device, kHalf, 1), v = Make(device, kFloat, 2),
                 estimate = Make(device, kHalf, 3);
  const cudaError_t launched = LaunchEstimateByVelocity(
      LaunchOn(device), w.data, static_cast<const float*>(v.data), 0.3F,
      estimate.data, kNumTrained);
  for (int64_t i = 0; i < kNumTrained; ++i) {
    estimate.values[i] = w.values[i] - double{0.3F} * v.values[i];
  }
  return Check(device, launched, {{"estimate", estimate}, {"weight", w}});
}

Errors ByAdam(TestDevice* device) {
  TrainingTensor w = Make(device, kHalf, 1), m = Make(device, kFloat, 2),
                 v = Make(device, kFloat, 3, 0.01),
                 estimate = Make(device, kHalf, 4);
  AdamStep adam;
  adam.step = 3;
  adam.weight_decay = 0.1F;
  const cudaError_t launched = LaunchEstimateByAdam(
      LaunchOn(device), adam, w.data, static_cast<const float*>(m.data),
      static_cast<const float*>(v.data), 0.5F, estimate.data, kNumTrained);
  const double first = 1 - std::pow(double{adam.beta1}, 3),
               second = 1 - std::pow(double{adam.beta2}, 3);
  for (int64_t i = 0; i < kNumTrained; ++i) {
    const double direction =
        m.values[i] / first / (std::sqrt(v.values[i] / second) + adam.epsilon);
    estimate.values[i] =
        w.values[i] -
        0.5 * (direction + double{adam.weight_decay} * w.values[i]);
  }
  return Check(device, launched, {{"estimate", estimate}});
}

Errors Average(TestDevice* device) {
  TrainingTensor before = Make(device, kHalf, 1), now = Make(device, kHalf, 2),
                 average = Make(device, kFloat, 3);
  const cudaError_t launched =
      LaunchMoveAverage(LaunchOn(device), before.data, now.data, 0.75F,
                        static_cast<float*>(average.data), kNumTrained);
  for (int64_t i = 0; i < kNumTrained; ++i) {
    average.values[i] =
        0.75 * average.values[i] + 0.25 * (now.values[i] - before.values[i]);
  }
  return Check(device, launched, {{"average", average}});
}

Errors Add(TestDevice* device) {
  TrainingTensor x = Make(device, kFloat, 1), sum = Make(device, kFloat, 2);
  const cudaError_t launched =
      LaunchAdd(LaunchOn(device), static_cast<const float*>(x.data),
                static_cast<float*>(sum.data), kNumTrained);
  for (int64_t i = 0; i < kNumTrained; ++i) sum.values[i] += x.values[i];
  return Check(device, launched, {{"sum", sum}});
}

Errors Round(TestDevice* device) {
  constexpr int kBits = 5;
  TrainingTensor x = Make(device, kHalf, 1), y = Make(device, kHalf, 2);
  Launch launch = LaunchOn(device);
  launch.workspace = device->Upload(std::vector<uint8_t>(16, 0xFF));
  launch.workspace_bytes = 16;
  const cudaError_t launched =
      LaunchRoundToBits(launch, kBits, x.data, y.data, kNumTrained);
  double largest = 0;
  for (const double value : x.values) {
    largest = std::max(largest, std::abs(value));
  }
  for (int64_t i = 0; i < kNumTrained; ++i) {
    y.values[i] = std::nearbyint(x.values[i] / largest * 15) / 15 * largest;
  }
  return Check(device, launched, {{"rounded", y}});
}

}  // namespace

std::vector<OtherCheck> TrainingChecks() {
  return {{"momentum", &Momentum},
          {"estimate_by_velocity", &ByVelocity},
          {"estimate_by_adam", &ByAdam},
          {"move_average", &Average},
          {"add", &Add},
          {"round_to_bits", &Round}};
}

}  // namespace weir::calibrate
