// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/launch.cuh"
#include "calibrate/gpu/kernels/streaming.cuh"

namespace weir::calibrate {
namespace {

template <typename Element>
cudaError_t StartFillNormal(const Launch& launch, void* data,
                            int64_t num_elements, float deviation,
                            uint64_t seed) {
  return Start(launch, FillNormal<Element>, BlocksFor(num_elements, 8),
               kThreads, 0, static_cast<Element*>(data), num_elements,
               deviation, seed);
}

}  // namespace

cudaError_t LaunchAdam(const Launch& launch, const StageOp& op,
                       const Tensors& tensors) {
  const int64_t n = op.rows * op.columns;
  return WithHalf(launch.format, [&](auto half) {
    using Half = decltype(half);
    const AdamTensors<Half> t = {tensors.out<float>(0), tensors.out<float>(1),
                                 tensors.out<float>(2), tensors.out<float>(3),
                                 tensors.out<Half>(4)};
    return Start(launch, Adam<Half>, BlocksFor(n, 4), kThreads, 0, t,
                 FactorsOf(op.adam), n);
  });
}

cudaError_t LaunchClear(const Launch& launch, const StageOp& op,
                        const Tensors& tensors) {
  const int64_t bytes = op.rows * op.columns * static_cast<int>(sizeof(float));
  return Start(launch, Clear, BlocksFor(bytes, 16), kThreads, 0,
               tensors.out<unsigned char>(0), bytes);
}

cudaError_t LaunchFillNormal(const Launch& launch, ElementFormat format,
                             void* data, int64_t num_elements, float deviation,
                             uint64_t seed) {
  if (format == ElementFormat::kFp32) {
    return StartFillNormal<float>(launch, data, num_elements, deviation, seed);
  }
  return WithHalf(format, [&](auto half) {
    return StartFillNormal<decltype(half)>(launch, data, num_elements,
                                           deviation, seed);
  });
}

cudaError_t LaunchFillTokens(const Launch& launch, int32_t* data,
                             int64_t num_elements, int32_t limit,
                             uint64_t seed) {
  return Start(launch, FillTokens, BlocksFor(num_elements, 4), kThreads, 0,
               data, num_elements, limit, seed);
}

cudaError_t LaunchEmpty(const Launch& launch) {
  return Start(launch, Empty, 1, kWarpSize, 0);
}

cudaError_t LaunchCopy(const Launch& launch, const void* from, void* to,
                       int64_t bytes) {
  return Start(launch, Copy, BlocksFor(bytes, 16 * kCopyVectors), kThreads, 0,
               static_cast<const unsigned char*>(from),
               static_cast<unsigned char*>(to), bytes);
}

}  // namespace weir::calibrate
