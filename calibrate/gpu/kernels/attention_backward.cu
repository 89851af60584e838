// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/attention_backward.cuh"
#include "calibrate/gpu/kernels/attention_launch.cuh"

namespace weir::calibrate {
namespace {

template <typename Half, int kHeadSize>
cudaError_t LaunchHead(const Launch& launch, const StageOp& op,
                       const Tensors& tensors) {
  using Queries = QueryTile<kHeadSize>;
  using Keys = KeyTile<kHeadSize>;
  const AttentionGradients<Half> t = {
      tensors.in<Half>(0),  tensors.in<Half>(1),  tensors.in<Half>(2),
      tensors.in<float>(3), tensors.out<Half>(0), tensors.out<float>(1)};
  const AttentionShape shape = ShapeOf(op);
  cudaError_t error =
      Start(launch, RowDots<Half, kHeadSize>, op.sequences * op.sequence_length,
            ThreadsFor(op.heads * kHeadSize / kVector, 256), 0, t.d_o, t.o,
            t.dots, shape.sequence_length, shape.heads);
  if (error != cudaSuccess) return error;
  error = Start(
      launch, AttentionBackwardKeys<Half, kHeadSize>,
      CeilDivide(op.sequence_length, Keys::kKeys) * op.kv_heads * op.sequences,
      Keys::kThreads, Keys::kSharedBytes, t, shape);
  if (error != cudaSuccess) return error;
  return Start(launch, AttentionBackwardQueries<Half, kHeadSize>,
               CeilDivide(op.sequence_length, Queries::kQueries) * op.heads *
                   op.sequences,
               Queries::kThreads, Queries::kSharedBytes, t, shape);
}

}  // namespace

cudaError_t LaunchAttentionBackward(const Launch& launch, const StageOp& op,
                                    const Tensors& tensors) {
  return WithHead(launch.format, op.head_size, [&](auto half, auto head_size) {
    using Half = decltype(half);
    constexpr int kHeadSize = decltype(head_size)::value;
    const cudaError_t error =
        NeedsTensorCores(&AttentionBackwardKeys<Half, kHeadSize>);
    if (error != cudaSuccess) return error;
    return LaunchHead<Half, kHeadSize>(launch, op, tensors);
  });
}

}  // namespace weir::calibrate
