// SPDX-License-Identifier: Apache-2.0
// Softmax over rows, one block each, in two passes: the maximum and the sum of
// exponentials in one ("online", Milakov & Gimelshein 2018), then the results
// in place. The second pass reads from the cache what the first has read.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_SOFTMAX_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_SOFTMAX_CUH_

#include "calibrate/gpu/kernels/elementwise.cuh"

namespace weir::calibrate {

// Statistics of scores times log2(e), for which exponentials are powers of 2.
struct RowStatistics {
  float largest;  // finite
  float sum;      // sum of 2^(score - largest)
};

// Computes the statistics of the first `num_elements` of the row that begins
// with vector `begin`, with all threads of the block. Requires: num_elements >
// 0. Shared memory: two floats per warp.
template <typename Half>
__device__ __forceinline__ RowStatistics SoftmaxRow(const Half* x,
                                                    int64_t begin,
                                                    int64_t num_elements,
                                                    float log2_scale) {
  float largest = -INFINITY, sum = 0;
  WEIR_FOR_ROW_VECTORS(v, (num_elements + kVector - 1) / kVector) {
    Float8 score = Load8(x, begin + v);
    float most = largest;
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      score.v[j] =
          v * kVector + j < num_elements ? score.v[j] * log2_scale : -INFINITY;
      most = fmaxf(most, score.v[j]);
    }
    sum *= Exp2(largest - most);  // 2^-inf the first time: most is finite
#pragma unroll
    for (int j = 0; j < kVector; ++j) sum += Exp2(score.v[j] - most);
    largest = most;
  }
  float* scratch = SharedMemory<float>();
  const float most = BlockMax(largest, scratch);
  sum = BlockSum(sum * Exp2(largest - most), scratch + blockDim.x / kWarpSize);
  return {most, sum};
}

// Causal: row r sees columns up to r mod num_columns; the rest become 0.
template <typename Half>
__global__ void Softmax(Half* scores, int64_t num_vectors, float log2_scale,
                        bool causal) {
  const int64_t begin = blockIdx.x * num_vectors;
  const int64_t columns = num_vectors * kVector;
  const int64_t seen = causal ? blockIdx.x % columns + 1 : columns;
  const RowStatistics row = SoftmaxRow(scores, begin, seen, log2_scale);
  const float inverse = 1 / row.sum;
  WEIR_FOR_ROW_VECTORS(v, num_vectors) {
    Float8 p = {};
    if (v * kVector < seen) p = Load8(scores, begin + v);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      p.v[j] = v * kVector + j < seen
                   ? Exp2(p.v[j] * log2_scale - row.largest) * inverse
                   : 0.0F;
    }
    Store8(scores, begin + v, p);
  }
}

// d = p (d - sum of p d) scale, in place. Shared memory: one float per warp.
template <typename Half>
__global__ void SoftmaxGradient(const Half* probabilities, Half* gradient,
                                int64_t num_vectors, float scale) {
  const int64_t begin = blockIdx.x * num_vectors;
  float sum = 0;
  WEIR_FOR_ROW_VECTORS(v, num_vectors) {
    const Float8 p = Load8(probabilities, begin + v);
    const Float8 d = Load8(gradient, begin + v);
#pragma unroll
    for (int j = 0; j < kVector; ++j) sum += p.v[j] * d.v[j];
  }
  sum = BlockSum(sum, SharedMemory<float>());
  WEIR_FOR_ROW_VECTORS(v, num_vectors) {
    const Float8 p = Load8(probabilities, begin + v);
    Float8 d = Load8(gradient, begin + v);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      d.v[j] = p.v[j] * (d.v[j] - sum) * scale;
    }
    Store8(gradient, begin + v, d);
  }
}

// Shared memory: two floats per warp.
template <typename Half>
__global__ void CrossEntropy(Half* logits, const int32_t* targets,
                             float* losses, int64_t num_vectors,
                             float loss_scale) {
  const int64_t begin = blockIdx.x * num_vectors;
  const int32_t target = targets[blockIdx.x];
  const float of_target =
      Pair<Half>::ToFloat(logits[begin * kVector + target]) * kLog2E;
  const RowStatistics row =
      SoftmaxRow(logits, begin, num_vectors * kVector, kLog2E);
  if (threadIdx.x == 0) {
    losses[blockIdx.x] = (log2f(row.sum) + row.largest - of_target) * kLn2;
  }
  const float inverse = loss_scale / row.sum;
  WEIR_FOR_ROW_VECTORS(v, num_vectors) {
    Float8 d = Load8(logits, begin + v);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      d.v[j] = Exp2(d.v[j] * kLog2E - row.largest) * inverse;
      if (v * kVector + j == target) d.v[j] -= loss_scale;
    }
    Store8(logits, begin + v, d);
  }
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_SOFTMAX_CUH_
