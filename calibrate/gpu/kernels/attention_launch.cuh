// SPDX-License-Identifier: Apache-2.0
// Shared by the launchers of fused attention.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_ATTENTION_LAUNCH_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_ATTENTION_LAUNCH_CUH_

#include <type_traits>

#include "calibrate/gpu/kernels/attention_tile.cuh"
#include "calibrate/gpu/kernels/launch.cuh"

namespace weir::calibrate {

inline AttentionShape ShapeOf(const StageOp& op) {
  return {static_cast<int>(op.sequence_length),
          static_cast<int>(op.sequences),
          op.heads,
          op.kv_heads,
          1 / std::sqrt(static_cast<float>(op.head_size)),
          op.causal};
}

// Checks that the kernel's code on this device is for compute capability 8.0 or
// later.
template <typename Kernel>
cudaError_t NeedsTensorCores(Kernel* kernel) {
#ifdef __CUDACC__
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
  if (error != cudaSuccess) return error;
  return attributes.binaryVersion < 80 ? cudaErrorNotSupported : cudaSuccess;
#else
  (void)kernel;
  return cudaSuccess;
#endif
}

// Calls run(Half(), head size as an integral_constant).
template <typename Run>
cudaError_t WithHead(ElementFormat format, int head_size, Run run) {
  return WithHalf(format, [&](auto half) {
    if (head_size == 64) return run(half, std::integral_constant<int, 64>());
    if (head_size == 128) return run(half, std::integral_constant<int, 128>());
    return cudaErrorNotSupported;
  });
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_ATTENTION_LAUNCH_CUH_
