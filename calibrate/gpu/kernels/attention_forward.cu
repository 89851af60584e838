// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/attention_forward.cuh"
#include "calibrate/gpu/kernels/attention_launch.cuh"

namespace weir::calibrate {

cudaError_t LaunchAttentionForward(const Launch& launch, const StageOp& op,
                                   const Tensors& tensors) {
  return WithHead(launch.format, op.head_size, [&](auto half, auto head_size) {
    using Half = decltype(half);
    constexpr int kHeadSize = decltype(head_size)::value;
    auto* kernel = &AttentionForward<Half, kHeadSize>;
    const cudaError_t error = NeedsTensorCores(kernel);
    if (error != cudaSuccess) return error;
    const int64_t tiles = CeilDivide(op.sequence_length, ForwardTile::kQueries);
    constexpr int kSharedBytes =
        (ForwardTile::kQueries + 2 * ForwardTile::kKeys) * kHeadSize * 2;
    return Start(launch, kernel, tiles * op.heads * op.sequences,
                 ForwardTile::kThreads, kSharedBytes, tensors.in<Half>(0),
                 tensors.out<Half>(0), tensors.out<float>(1), ShapeOf(op));
  });
}

}  // namespace weir::calibrate
