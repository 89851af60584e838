// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/elementwise.cuh"
#include "calibrate/gpu/kernels/embedding.cuh"
#include "calibrate/gpu/kernels/launch.cuh"

namespace weir::calibrate {
namespace {

template <typename Half>
cudaError_t LaunchRotary(const Launch& launch, const StageOp& op,
                         const Tensors& t) {
  if (op.head_size % (2 * kVector) != 0) return cudaErrorNotSupported;
  const int num_heads = op.heads + op.kv_heads;
  const int64_t row = (num_heads + op.kv_heads) * op.head_size / kVector;
  const int work = num_heads * op.head_size / (2 * kVector);
  return Start(launch, Rotary<Half>, op.sequences * op.sequence_length,
               ThreadsFor(work, kThreads), op.head_size * 4, t.out<Half>(0),
               op.kind == OpKind::kRotaryForward ? 1.0F : -1.0F,
               std::log2(static_cast<double>(op.rotary_base)),
               op.sequence_length, num_heads, row, op.head_size);
}

template <typename Half>
cudaError_t LaunchEmbeddingBackward(const Launch& launch, const StageOp& op,
                                    const Tensors& t, int64_t vectors,
                                    int threads) {
  const cudaError_t error =
      Start(launch, EmbeddingBackward<Half>, op.rows, threads, 0, t.in<Half>(0),
            t.in<int32_t>(1), t.out<float>(0), vectors);
  if (error != cudaSuccess || t.outputs[1] == nullptr) return error;
  return Start(launch, PositionBackward<Half>, op.sequence_length, threads, 0,
               t.in<Half>(0), t.out<float>(1), op.sequences, op.sequence_length,
               vectors);
}

template <typename Half>
cudaError_t LaunchRows(const Launch& launch, const StageOp& op,
                       const Tensors& t) {
  const int64_t vectors = op.columns / kVector;
  const int threads = ThreadsFor(vectors, kThreads);
  switch (op.kind) {
    case OpKind::kResidualForward:
      return Start(launch, ResidualForward<Half>, op.rows, threads, 0,
                   t.in<Half>(0), t.in<Half>(1), t.in<Half>(2), t.out<Half>(0),
                   DropoutOf(op, nullptr, t.out<uint8_t>(1)), vectors);
    case OpKind::kDropoutBackward:
      return Start(launch, DropoutBackward<Half>, op.rows, threads, 0,
                   t.in<Half>(0), t.in<uint8_t>(1), t.out<Half>(0),
                   1 / (1 - op.dropout), vectors);
    case OpKind::kGeluForward:
      return Start(launch, GeluForward<Half>, op.rows, threads, 0,
                   t.in<Half>(0), t.in<Half>(1), t.out<Half>(0), vectors);
    case OpKind::kGeluBackward:
      return Start(launch, GeluBackward<Half>, op.rows, threads, 0,
                   t.in<Half>(0), t.in<Half>(1), t.in<Half>(2), t.out<Half>(0),
                   vectors);
    case OpKind::kGatedForward:
      return Start(launch, GatedForward<Half>, op.rows, threads, 0,
                   t.in<Half>(0), t.out<Half>(0), vectors);
    case OpKind::kGatedBackward:
      return Start(launch, GatedBackward<Half>, op.rows, threads, 0,
                   t.in<Half>(0), t.in<Half>(1), t.out<Half>(0), vectors);
    case OpKind::kEmbeddingForward:
      return Start(launch, EmbeddingForward<Half>, op.rows, threads, 0,
                   t.in<int32_t>(0), t.in<Half>(1), t.in<Half>(2),
                   t.out<Half>(0), op.sequence_length, vectors);
    case OpKind::kEmbeddingBackward:
      return LaunchEmbeddingBackward<Half>(launch, op, t, vectors, threads);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace

cudaError_t LaunchElementwise(const Launch& launch, const StageOp& op,
                              const Tensors& tensors) {
  return WithHalf(launch.format, [&](auto half) {
    using Half = decltype(half);
    if (op.kind == OpKind::kRotaryForward ||
        op.kind == OpKind::kRotaryBackward) {
      return LaunchRotary<Half>(launch, op, tensors);
    }
    if (op.columns % kVector != 0) return cudaErrorNotSupported;
    return LaunchRows<Half>(launch, op, tensors);
  });
}

}  // namespace weir::calibrate
