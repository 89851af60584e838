// SPDX-License-Identifier: Apache-2.0
// LayerNorm and RMSNorm. A block processes a row, which stays in registers from
// load to store: kVectors of 8 elements per thread.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_NORM_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_NORM_CUH_

#include "calibrate/gpu/kernels/elementwise.cuh"

namespace weir::calibrate {

// The maximum number of threads of a multiprocessor (7.5: 1024, else 2048 or
// 1536) bounds the registers of narrow rows.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
constexpr int kNormBlocks = 1;
#else
constexpr int kNormBlocks = 2;
#endif

template <typename Half>
struct NormForwardTensors {
  const Half *x, *delta, *bias, *gain, *shift;
  Half *sum, *y;
  float2* statistics;
};

// Shared memory: two floats per warp.
template <typename Half, int kVectors>
__global__ void __launch_bounds__(1024, kVectors == 1 ? kNormBlocks : 1)
    NormForward(NormForwardTensors<Half> t, Dropout dropout,
                int64_t num_vectors, bool rms, float epsilon) {
  float* scratch = SharedMemory<float>();
  const int64_t begin = blockIdx.x * num_vectors;
  const float columns = static_cast<float>(num_vectors * kVector);
  Float8 x[kVectors] = {};
  float total = 0;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int64_t v = threadIdx.x + i * static_cast<int64_t>(blockDim.x);
    if (v >= num_vectors) continue;
    x[i] = Load8(t.x, begin + v);
    if (t.delta != nullptr) {
      x[i] = AddDelta(x[i], Load8(t.delta, begin + v), t.bias, v, begin + v,
                      dropout);
      if (t.sum != nullptr) Store8(t.sum, begin + v, x[i]);
    }
#pragma unroll
    for (int j = 0; j < kVector; ++j) total += x[i].v[j];
  }
  float mean = 0;
  if (!rms) mean = BlockSum(total, scratch) / columns;
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int64_t v = threadIdx.x + i * static_cast<int64_t>(blockDim.x);
    if (v >= num_vectors) continue;
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      x[i].v[j] -= mean;
      squares += x[i].v[j] * x[i].v[j];
    }
  }
  squares = BlockSum(squares, scratch + blockDim.x / kWarpSize);
  const float inverse = ReciprocalRoot(squares / columns + epsilon);
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int64_t v = threadIdx.x + i * static_cast<int64_t>(blockDim.x);
    if (v >= num_vectors) continue;
    const Float8 gain = Load8(t.gain, v);
    Float8 shift = {};
    if (t.shift != nullptr) shift = Load8(t.shift, v);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      x[i].v[j] = x[i].v[j] * inverse * gain.v[j] + shift.v[j];
    }
    Store8(t.y, begin + v, x[i]);
  }
  if (threadIdx.x == 0) t.statistics[blockIdx.x] = {mean, inverse};
}

template <typename Half>
struct NormBackwardTensors {
  const Half *dy, *sum;
  const float2* statistics;
  const Half *gain, *residual;
  Half* d_sum;
  // Sums of each block's rows, [blocks, columns], summed by SumPartials.
  float *gain_partials, *shift_partials;
};

// The words of a row that one thread has in flight.
template <int kVectors>
struct NormRow {
  uint4 dy[kVectors], sum[kVectors], residual[kVectors];
  float2 statistics;
};

template <typename Half, int kVectors>
__device__ __forceinline__ void LoadRow(const NormBackwardTensors<Half>& t,
                                        int64_t row, int64_t num_vectors,
                                        NormRow<kVectors>& out) {
  out.statistics = t.statistics[row];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int64_t v = threadIdx.x + i * static_cast<int64_t>(blockDim.x);
    out.dy[i] = out.sum[i] = out.residual[i] = {};
    if (v >= num_vectors) continue;
    out.dy[i] = LoadWords(t.dy, row * num_vectors + v);
    out.sum[i] = LoadWords(t.sum, row * num_vectors + v);
    if (t.residual == nullptr) continue;
    out.residual[i] = LoadWords(t.residual, row * num_vectors + v);
  }
}

__device__ __forceinline__ float2 BlockSum2(float2 x, float2* scratch) {
  const unsigned lane = threadIdx.x % kWarpSize;
  x = {WarpSum(x.x), WarpSum(x.y)};
  if (lane == 0) scratch[threadIdx.x / kWarpSize] = x;
  __syncthreads();
  const bool used = lane < blockDim.x / kWarpSize;
  x = used ? scratch[lane] : float2{0, 0};
  return {WarpSum(x.x), WarpSum(x.y)};
}

// A block processes every gridDim-th row and prefetches the next one. Threads
// own columns, so the sums over rows stay in registers. Shared memory: four
// floats per warp.
template <typename Half, int kVectors>
__global__ void __launch_bounds__(1024, 1)
    NormBackward(NormBackwardTensors<Half> t, int64_t rows, int64_t num_vectors,
                 bool rms) {
  const float columns = static_cast<float>(num_vectors * kVector);
  Float8 d_gain[kVectors] = {}, d_shift[kVectors] = {};
  NormRow<kVectors> next;
  LoadRow(t, blockIdx.x, num_vectors, next);
  int turn = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const NormRow<kVectors> now = next;
    if (row + gridDim.x < rows) {
      LoadRow(t, row + gridDim.x, num_vectors, next);
    }
    const float mean = now.statistics.x, inverse = now.statistics.y;
    float2 sums = {0, 0};
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int64_t v = threadIdx.x + i * static_cast<int64_t>(blockDim.x);
      if (v >= num_vectors) continue;
      const Float8 dy = Unpack<Half>(now.dy[i]), x = Unpack<Half>(now.sum[i]);
      const Float8 gain = Load8(t.gain, v);
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        const float normed = (x.v[j] - mean) * inverse;
        d_gain[i].v[j] += dy.v[j] * normed;
        d_shift[i].v[j] += dy.v[j];
        sums.x += dy.v[j] * gain.v[j];
        sums.y += dy.v[j] * gain.v[j] * normed;
      }
    }
    sums = BlockSum2(sums,
                     SharedMemory<float2>() + turn * (blockDim.x / kWarpSize));
    turn ^= 1;
    const float offset = rms ? 0.0F : sums.x / columns;
    const float slope = sums.y / columns;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int64_t v = threadIdx.x + i * static_cast<int64_t>(blockDim.x);
      if (v >= num_vectors) continue;
      const Float8 dy = Unpack<Half>(now.dy[i]), x = Unpack<Half>(now.sum[i]);
      const Float8 gain = Load8(t.gain, v);
      Float8 d = Unpack<Half>(now.residual[i]);
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        const float normed = (x.v[j] - mean) * inverse;
        d.v[j] += (dy.v[j] * gain.v[j] - offset - normed * slope) * inverse;
      }
      Store8(t.d_sum, row * num_vectors + v, d);
    }
  }
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int64_t v = threadIdx.x + i * static_cast<int64_t>(blockDim.x);
    if (v >= num_vectors) continue;
    Store8(t.gain_partials, blockIdx.x * num_vectors + v, d_gain[i]);
    if (t.shift_partials == nullptr) continue;
    Store8(t.shift_partials, blockIdx.x * num_vectors + v, d_shift[i]);
  }
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_NORM_CUH_
