// SPDX-License-Identifier: Apache-2.0
// Embeddings and rotary positions: one block per token.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_EMBEDDING_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_EMBEDDING_CUH_

#include "calibrate/gpu/kernels/elementwise.cuh"

namespace weir::calibrate {

template <typename Half>
__global__ void EmbeddingForward(const int32_t* tokens, const Half* table,
                                 const Half* positions, Half* y,
                                 int64_t sequence_length, int64_t num_vectors) {
  const int64_t token = blockIdx.x;
  const int64_t from = tokens[token] * num_vectors;
  const int64_t position = token % sequence_length * num_vectors;
  WEIR_FOR_ROW_VECTORS(v, num_vectors) {
    Float8 x = Load8(table, from + v);
    if (positions != nullptr) Add(x, Load8(positions, position + v));
    Store8(y, token * num_vectors + v, x);
  }
}

__device__ __forceinline__ void AtomicAdd4(float* sum, float4 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  atomicAdd(reinterpret_cast<float4*>(sum), x);
#else
  atomicAdd(sum, x.x);
  atomicAdd(sum + 1, x.y);
  atomicAdd(sum + 2, x.z);
  atomicAdd(sum + 3, x.w);
#endif
}

// Uses atomics, so the order of summation over equal tokens varies.
template <typename Half>
__global__ void EmbeddingBackward(const Half* gradient, const int32_t* tokens,
                                  float* table_gradient, int64_t num_vectors) {
  const int64_t token = blockIdx.x;
  float* row = table_gradient + tokens[token] * num_vectors * kVector;
  WEIR_FOR_ROW_VECTORS(v, num_vectors) {
    const Float8 x = Load8(gradient, token * num_vectors + v);
    float* to = row + v * kVector;
    AtomicAdd4(to, {x.v[0], x.v[1], x.v[2], x.v[3]});
    AtomicAdd4(to + 4, {x.v[4], x.v[5], x.v[6], x.v[7]});
  }
}

// One block per position: sums over the sequences in order.
template <typename Half>
__global__ void PositionBackward(const Half* gradient, float* position_gradient,
                                 int64_t sequences, int64_t sequence_length,
                                 int64_t num_vectors) {
  const int64_t position = blockIdx.x;
  WEIR_FOR_ROW_VECTORS(v, num_vectors) {
    Float8 sum = Load8(position_gradient, position * num_vectors + v);
    for (int64_t s = 0; s < sequences; ++s) {
      const int64_t token = s * sequence_length + position;
      Add(sum, Load8(gradient, token * num_vectors + v));
    }
    Store8(position_gradient, position * num_vectors + v, sum);
  }
}

// Rotates the first `num_heads` heads of each token (queries, then keys) by
// `direction` times the angles, which all heads share: a table of head_size
// floats. Angles are computed in double, as a float position times frequency
// has the position's rounding error: 0.01 at 10^5.
template <typename Half>
__global__ void Rotary(Half* packed, float direction, double log2_base,
                       int64_t sequence_length, int num_heads,
                       int64_t row_vectors, int head_size) {
  float2* turn = SharedMemory<float2>();
  const int half_size = head_size / 2;
  const int64_t token = blockIdx.x;
  for (int j = threadIdx.x; j < half_size; j += blockDim.x) {
    constexpr double kTurn = 6.283185307179586;
    const double angle = static_cast<double>(token % sequence_length) *
                         exp2(-2.0 * j / head_size * log2_base);
    const auto rest = static_cast<float>(angle - kTurn * rint(angle / kTurn));
    turn[j] = {cosf(rest), direction * sinf(rest)};
  }
  __syncthreads();
  const int vectors = half_size / kVector;  // per half of a head
  for (int i = threadIdx.x; i < num_heads * vectors; i += blockDim.x) {
    const int head = i / vectors, part = i % vectors;
    const int64_t at = token * row_vectors + head * 2 * vectors + part;
    Float8 a = Load8(packed, at), b = Load8(packed, at + vectors);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      const float2 t = turn[part * kVector + j];
      const float x = a.v[j], y = b.v[j];
      a.v[j] = x * t.x - y * t.y;
      b.v[j] = x * t.y + y * t.x;
    }
    Store8(packed, at, a);
    Store8(packed, at + vectors, b);
  }
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_EMBEDDING_CUH_
