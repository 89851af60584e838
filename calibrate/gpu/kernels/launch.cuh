// SPDX-License-Identifier: Apache-2.0
// Launches kernels, on a device or in the emulator.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_LAUNCH_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_LAUNCH_CUH_

#include <algorithm>

#include "calibrate/gpu/kernels/elementwise.cuh"
#include "calibrate/gpu/kernels/launchers.h"

namespace weir::calibrate {

constexpr int64_t kMaxGrid = (int64_t{1} << 31) - 1;

// Threads of a block, for kernels whose threads work alone.
constexpr int kThreads = 256;

inline int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Returns the blocks of kThreads for `num_elements`.
inline int64_t BlocksFor(int64_t num_elements, int per_thread) {
  return CeilDivide(num_elements, int64_t{kThreads} * per_thread);
}

// Returns the threads for rows of `vectors`, such that all rounds are equally
// full.
inline int ThreadsFor(int64_t vectors, int most) {
  vectors = std::max<int64_t>(vectors, 1);
  const int64_t each = CeilDivide(vectors, CeilDivide(vectors, most));
  return static_cast<int>(CeilDivide(each, kWarpSize) * kWarpSize);
}

// Returns the bytes for BlockReduce: one float per warp and reduction.
inline int ScratchBytes(int threads, int num_reductions) {
  return threads / kWarpSize * num_reductions * static_cast<int>(sizeof(float));
}

#ifdef __CUDACC__
// Returns the launch's own error. cudaGetLastError could also return an error
// left by an earlier call, such as a query of unfinished work or a library's
// attempt.
template <typename... Parameters>
cudaError_t LaunchNow(const Launch& launch, void (*kernel)(Parameters...),
                      int64_t num_blocks, int threads, int shared_bytes,
                      Parameters... parameters) {
  void* pointers[] = {&parameters..., nullptr};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel),
                          dim3(static_cast<unsigned>(num_blocks)),
                          dim3(threads), pointers, shared_bytes, launch.stream);
}
#endif

// Launches nothing if the grid is empty.
template <typename... Parameters, typename... Arguments>
cudaError_t Start(const Launch& launch, void (*kernel)(Parameters...),
                  int64_t num_blocks, int threads, int shared_bytes,
                  Arguments... arguments) {
  if (num_blocks <= 0) return cudaSuccess;
  if (num_blocks > kMaxGrid) return cudaErrorNotSupported;
#ifdef __CUDACC__
  if (shared_bytes > 48 * 1024 &&
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           shared_bytes) != cudaSuccess) {
    (void)cudaGetLastError();  // clears the error of this call
    return cudaErrorNotSupported;
  }
  return LaunchNow<Parameters...>(launch, kernel, num_blocks, threads,
                                  shared_bytes,
                                  static_cast<Parameters>(arguments)...);
#else
  (void)launch;
  return emulator::Run(num_blocks, threads, shared_bytes,
                       [=] { kernel(static_cast<Parameters>(arguments)...); });
#endif
}

// Calls run(Half()) with the type of the format; NotSupported for others.
template <typename Run>
cudaError_t WithHalf(ElementFormat format, Run run) {
  if (format == ElementFormat::kBf16) return run(__nv_bfloat16());
  if (format == ElementFormat::kFp16) return run(__half());
  return cudaErrorNotSupported;
}

inline Dropout DropoutOf(const StageOp& op, const uint8_t* mask_in,
                         uint8_t* mask_out) {
  return {mask_in, mask_out, op.seed, DropThreshold(op.dropout),
          1 / (1 - op.dropout)};
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_LAUNCH_CUH_
