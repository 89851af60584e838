// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/column_sums.cuh"
#include "calibrate/gpu/kernels/launch.cuh"
#include "calibrate/gpu/kernels/norm.cuh"
#include "calibrate/gpu/kernels/softmax.cuh"

namespace weir::calibrate {
namespace {

constexpr int kMostThreads = 1024;

int64_t Multiprocessors(const Launch& launch) {
  return std::max(1, launch.num_multiprocessors);
}

// Returns the blocks of the backward's first phase: as many as run
// concurrently.
int64_t NormBlocks(const Launch& launch, const StageOp& op) {
  const int threads = ThreadsFor(op.columns / kVector, kMostThreads);
  return std::min<int64_t>(
      op.rows, Multiprocessors(launch) * std::min(16, 1024 / threads));
}

struct Chunks {
  int64_t num_tiles, rows_per_chunk, num_chunks;
};

// Returns eight blocks per multiprocessor, each with at least 32 rows.
Chunks ChunksOf(const Launch& launch, const StageOp& op) {
  Chunks chunks;
  chunks.num_tiles = CeilDivide(op.columns, kSumColumns);
  const int64_t wanted =
      CeilDivide(8 * Multiprocessors(launch), chunks.num_tiles);
  chunks.rows_per_chunk =
      std::max<int64_t>(4 * kSumWarps, CeilDivide(op.rows, wanted));
  chunks.num_chunks = CeilDivide(op.rows, chunks.rows_per_chunk);
  return chunks;
}

cudaError_t StartSumPartials(const Launch& launch, const float* partials,
                             float* sums, int64_t num_partials,
                             int64_t columns) {
  return Start(launch, SumPartials, CeilDivide(columns, kWarpSize), 1024,
               kWarpSize * (kWarpSize + 1) * 4, partials, sums, num_partials,
               columns);
}

template <typename Half>
cudaError_t LaunchBiasGradient(const Launch& launch, const StageOp& op,
                               const Tensors& t) {
  const Chunks chunks = ChunksOf(launch, op);
  auto* partials = static_cast<float*>(launch.workspace);
  const cudaError_t error =
      Start(launch, ColumnSums<Half>, chunks.num_chunks * chunks.num_tiles,
            kSumThreads, kSumSharedBytes, t.in<Half>(0), partials, op.rows,
            op.columns / kVector, chunks.rows_per_chunk,
            static_cast<int>(chunks.num_tiles));
  if (error != cudaSuccess) return error;
  return StartSumPartials(launch, partials, t.out<float>(0), chunks.num_chunks,
                          op.columns);
}

template <typename Half>
cudaError_t LaunchNormForward(const Launch& launch, const StageOp& op,
                              const Tensors& t) {
  const int64_t vectors = op.columns / kVector;
  const int threads = ThreadsFor(vectors, kMostThreads);
  const NormForwardTensors<Half> tensors = {
      t.in<Half>(0), t.in<Half>(1),  t.in<Half>(2),  t.in<Half>(4),
      t.in<Half>(5), t.out<Half>(0), t.out<Half>(1), t.out<float2>(2)};
  const Dropout dropout = DropoutOf(op, t.in<uint8_t>(3), t.out<uint8_t>(3));
  const bool wide = vectors > threads;
  return Start(launch, wide ? NormForward<Half, 2> : NormForward<Half, 1>,
               op.rows, threads, ScratchBytes(threads, 2), tensors, dropout,
               vectors, op.rms, op.epsilon);
}

template <typename Half>
cudaError_t LaunchNormBackward(const Launch& launch, const StageOp& op,
                               const Tensors& t) {
  const int64_t vectors = op.columns / kVector;
  const int threads = ThreadsFor(vectors, kMostThreads);
  const int64_t blocks = NormBlocks(launch, op);
  auto* partials = static_cast<float*>(launch.workspace);
  float* shift_partials =
      t.outputs[2] == nullptr ? nullptr : partials + blocks * op.columns;
  const NormBackwardTensors<Half> tensors = {
      t.in<Half>(0), t.in<Half>(1),  t.in<float2>(2), t.in<Half>(3),
      t.in<Half>(4), t.out<Half>(0), partials,        shift_partials};
  const bool wide = vectors > threads;
  cudaError_t error = Start(
      launch, wide ? NormBackward<Half, 2> : NormBackward<Half, 1>, blocks,
      threads, ScratchBytes(threads, 4), tensors, op.rows, vectors, op.rms);
  if (error != cudaSuccess) return error;
  error =
      StartSumPartials(launch, partials, t.out<float>(1), blocks, op.columns);
  if (error != cudaSuccess || shift_partials == nullptr) return error;
  return StartSumPartials(launch, shift_partials, t.out<float>(2), blocks,
                          op.columns);
}

template <typename Half>
cudaError_t LaunchCrossEntropy(const Launch& launch, const StageOp& op,
                               const Tensors& t) {
  const int64_t vectors = op.columns / kVector;
  const int threads = ThreadsFor(vectors, kMostThreads);
  return Start(launch, CrossEntropy<Half>, op.rows, threads,
               ScratchBytes(threads, 2), t.out<Half>(0), t.in<int32_t>(1),
               t.out<float>(1), vectors, op.loss_scale);
}

template <typename Half>
cudaError_t LaunchHalf(const Launch& launch, const StageOp& op,
                       const Tensors& t) {
  switch (op.kind) {
    case OpKind::kBiasGradient:
      return LaunchBiasGradient<Half>(launch, op, t);
    case OpKind::kNormForward:
      return LaunchNormForward<Half>(launch, op, t);
    case OpKind::kNormBackward:
      return LaunchNormBackward<Half>(launch, op, t);
    case OpKind::kCrossEntropy:
      return LaunchCrossEntropy<Half>(launch, op, t);
    default:
      return cudaErrorNotSupported;
  }
}

// Rows of scores are short, and other blocks' warps hide the barriers of a
// small block.
int SoftmaxThreads(int64_t columns) {
  return ThreadsFor(columns / kVector, 256);
}

}  // namespace

int64_t WorkspaceBytes(const Launch& launch, const StageOp& op) {
  constexpr int64_t kBytes = sizeof(float);
  if (op.columns <= 0) return 0;
  if (op.kind == OpKind::kBiasGradient) {
    return ChunksOf(launch, op).num_chunks * op.columns * kBytes;
  }
  if (op.kind == OpKind::kNormBackward) {
    return 2 * NormBlocks(launch, op) * op.columns * kBytes;
  }
  return 0;
}

cudaError_t LaunchReduction(const Launch& launch, const StageOp& op,
                            const Tensors& tensors) {
  constexpr int64_t kWidestNorm = int64_t{2} * kMostThreads * kVector;
  const bool norm =
      op.kind == OpKind::kNormForward || op.kind == OpKind::kNormBackward;
  if (op.columns % kVector != 0 || (norm && op.columns > kWidestNorm)) {
    return cudaErrorNotSupported;
  }
  const int64_t needed = WorkspaceBytes(launch, op);
  if (needed > 0 &&
      (launch.workspace == nullptr || launch.workspace_bytes < needed)) {
    return cudaErrorInvalidValue;
  }
  return WithHalf(launch.format, [&](auto half) {
    return LaunchHalf<decltype(half)>(launch, op, tensors);
  });
}

cudaError_t LaunchSoftmax(const Launch& launch, void* scores, int64_t num_rows,
                          int64_t columns, float scale, bool causal) {
  if (columns % kVector != 0) return cudaErrorNotSupported;
  return WithHalf(launch.format, [&](auto half) {
    using Half = decltype(half);
    const int threads = SoftmaxThreads(columns);
    return Start(launch, Softmax<Half>, num_rows, threads,
                 ScratchBytes(threads, 2), static_cast<Half*>(scores),
                 columns / kVector, scale * kLog2E, causal);
  });
}

cudaError_t LaunchSoftmaxGradient(const Launch& launch,
                                  const void* probabilities,
                                  void* d_probabilities, int64_t num_rows,
                                  int64_t columns, float scale) {
  if (columns % kVector != 0) return cudaErrorNotSupported;
  return WithHalf(launch.format, [&](auto half) {
    using Half = decltype(half);
    const int threads = SoftmaxThreads(columns);
    return Start(launch, SoftmaxGradient<Half>, num_rows, threads,
                 ScratchBytes(threads, 1),
                 static_cast<const Half*>(probabilities),
                 static_cast<Half*>(d_probabilities), columns / kVector, scale);
  });
}

}  // namespace weir::calibrate
