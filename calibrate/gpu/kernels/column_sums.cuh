// SPDX-License-Identifier: Apache-2.0
// Sums over rows in two phases, each in a fixed order, so that results are
// deterministic.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_COLUMN_SUMS_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_COLUMN_SUMS_CUH_

#include "calibrate/gpu/kernels/elementwise.cuh"

namespace weir::calibrate {

constexpr int kSumWarps = 8;                      // rows at a time
constexpr int kSumColumns = kWarpSize * kVector;  // per block
constexpr int kSumThreads = kSumWarps * kWarpSize;
constexpr int kSumSharedBytes = kSumWarps * kSumColumns * 4;

// Block (chunk, tile) sums the chunk-th `rows_per_chunk` rows of 256 columns
// into partials [chunks, columns].
template <typename Half>
__global__ void ColumnSums(const Half* x, float* partials, int64_t rows,
                           int64_t num_vectors, int64_t rows_per_chunk,
                           int num_tiles) {
  float* sums = SharedMemory<float>();  // [kSumWarps][kSumColumns]
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  const int64_t chunk = blockIdx.x / num_tiles;
  const int64_t v = (blockIdx.x % num_tiles) * kWarpSize + lane;
  int64_t end = (chunk + 1) * rows_per_chunk;
  if (end > rows) end = rows;
  Float8 sum = {};
  if (v < num_vectors) {
#pragma unroll 4
    for (int64_t row = chunk * rows_per_chunk + warp; row < end;
         row += kSumWarps) {
      Add(sum, Load8(x, row * num_vectors + v));
    }
  }
  Store8(sums, warp * kWarpSize + lane, sum);
  __syncthreads();
  const int64_t column = (blockIdx.x % num_tiles) * kSumColumns + threadIdx.x;
  if (column >= num_vectors * kVector) return;
  float total = 0;
#pragma unroll
  for (int i = 0; i < kSumWarps; ++i) {
    total += sums[i * kSumColumns + threadIdx.x];
  }
  partials[chunk * num_vectors * kVector + column] = total;
}

// sums[column] += sum of partials [num_partials, columns]: 32 columns per block
// of 32 warps.
static __global__ void SumPartials(const float* partials, float* sums,
                                   int64_t num_partials, int64_t columns) {
  float* tile = SharedMemory<float>();  // [32][33]
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarpSize + lane;
  float sum = 0;
  if (column < columns) {
#pragma unroll 4
    for (int64_t i = warp; i < num_partials; i += kWarpSize) {
      sum += partials[i * columns + column];
    }
  }
  tile[lane * (kWarpSize + 1) + warp] = sum;
  __syncthreads();
  sum = WarpSum(tile[warp * (kWarpSize + 1) + lane]);
  const int64_t mine = static_cast<int64_t>(blockIdx.x) * kWarpSize + warp;
  if (lane == 0 && mine < columns) sums[mine] += sum;
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_COLUMN_SUMS_CUH_
