// SPDX-License-Identifier: Apache-2.0
// Activations and residuals: one block per row, 16 bytes per thread and step.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_ELEMENTWISE_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_ELEMENTWISE_CUH_

#include "calibrate/execute/stage/dropout_mask.h"
#include "calibrate/gpu/kernels/device.cuh"

namespace weir::calibrate {

// With one block per row, loops over a thread's vectors, a block's width apart.
#define WEIR_FOR_ROW_VECTORS(v, num_vectors) \
  for (int64_t v = threadIdx.x; v < (num_vectors); v += blockDim.x)

struct Dropout {
  const uint8_t* mask_in = nullptr;  // used unchanged; null: drawn
  uint8_t* mask_out = nullptr;
  uint64_t seed = 0;
  uint32_t threshold = 0;  // DropThreshold(); 0 drops nothing
  float scale = 1;         // factor on kept elements
};

// Masks have one byte per element in memory, 0 or 1, and one bit in registers.
__device__ __forceinline__ uint32_t LoadMask8(const uint8_t* mask,
                                              int64_t vector) {
  const uint2 bytes = reinterpret_cast<const uint2*>(mask)[vector];
  uint32_t bits = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    bits |= (bytes.x >> (8 * j) & 1) << j | (bytes.y >> (8 * j) & 1) << (j + 4);
  }
  return bits;
}
__device__ __forceinline__ void StoreMask8(uint8_t* mask, int64_t vector,
                                           uint32_t bits) {
  uint2 bytes = {0, 0};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    bytes.x |= (bits >> j & 1) << (8 * j);
    bytes.y |= (bits >> (j + 4) & 1) << (8 * j);
  }
  reinterpret_cast<uint2*>(mask)[vector] = bytes;
}

__device__ __forceinline__ void KeepScaled(Float8& x, uint32_t kept,
                                           float scale) {
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    x.v[j] = (kept >> j & 1) != 0 ? x.v[j] * scale : 0.0F;
  }
}

__device__ __forceinline__ void Add(Float8& x, const Float8& y) {
#pragma unroll
  for (int j = 0; j < kVector; ++j) x.v[j] += y.v[j];
}

// Returns x + dropout(delta + bias). `vector` counts over the tensor,
// `row_vector` over the row, for the bias. Writes the mask if requested.
template <typename Half>
__device__ __forceinline__ Float8 AddDelta(Float8 x, Float8 delta,
                                           const Half* bias, int64_t row_vector,
                                           int64_t vector,
                                           const Dropout& dropout) {
  if (bias != nullptr) Add(delta, Load8(bias, row_vector));
  uint32_t kept = 0xFF;
  if (dropout.mask_in != nullptr) {
    kept = LoadMask8(dropout.mask_in, vector);
  } else if (dropout.threshold > 0) {
    kept = KeptOfEight(dropout.seed, dropout.threshold, vector);
  }
  if (dropout.mask_out != nullptr) StoreMask8(dropout.mask_out, vector, kept);
  KeepScaled(delta, kept, dropout.scale);
  Add(x, delta);
  return x;
}

template <typename Half>
__global__ void ResidualForward(const Half* x, const Half* delta,
                                const Half* bias, Half* sum, Dropout dropout,
                                int64_t num_vectors) {
  const int64_t begin = blockIdx.x * num_vectors;
  WEIR_FOR_ROW_VECTORS(v, num_vectors) {
    Store8(sum, begin + v,
           AddDelta(Load8(x, begin + v), Load8(delta, begin + v), bias, v,
                    begin + v, dropout));
  }
}

template <typename Half>
__global__ void DropoutBackward(const Half* gradient, const uint8_t* mask,
                                Half* delta_gradient, float scale,
                                int64_t num_vectors) {
  const int64_t begin = blockIdx.x * num_vectors;
  WEIR_FOR_ROW_VECTORS(v, num_vectors) {
    Float8 x = Load8(gradient, begin + v);
    KeepScaled(x, LoadMask8(mask, begin + v), scale);
    Store8(delta_gradient, begin + v, x);
  }
}

__device__ __forceinline__ float Sigmoid(float x) {
  return Divide(1.0F, 1.0F + Exp(-x));
}

// tanh(u) = 2 sigmoid(2 u) - 1, so gelu(x) = x sigmoid(2 u) with u = sqrt(2 /
// pi) (x + 0.044715 x^3).
constexpr float kGeluScale = 2 * 0.7978845608028654F;
constexpr float kGeluCubic = 0.044715F;

__device__ __forceinline__ float Gelu(float x) {
  return x * Sigmoid(kGeluScale * x * (1 + kGeluCubic * x * x));
}
__device__ __forceinline__ float GeluGradient(float x) {
  const float s = Sigmoid(kGeluScale * x * (1 + kGeluCubic * x * x));
  return s + x * s * (1 - s) * kGeluScale * (1 + 3 * kGeluCubic * x * x);
}

template <typename Half>
__global__ void GeluForward(const Half* x, const Half* bias, Half* y,
                            int64_t num_vectors) {
  const int64_t begin = blockIdx.x * num_vectors;
  WEIR_FOR_ROW_VECTORS(v, num_vectors) {
    Float8 a = Load8(x, begin + v);
    if (bias != nullptr) Add(a, Load8(bias, v));
#pragma unroll
    for (int j = 0; j < kVector; ++j) a.v[j] = Gelu(a.v[j]);
    Store8(y, begin + v, a);
  }
}

template <typename Half>
__global__ void GeluBackward(const Half* dy, const Half* x, const Half* bias,
                             Half* dx, int64_t num_vectors) {
  const int64_t begin = blockIdx.x * num_vectors;
  WEIR_FOR_ROW_VECTORS(v, num_vectors) {
    Float8 gradient = Load8(dy, begin + v);
    Float8 a = Load8(x, begin + v);
    if (bias != nullptr) Add(a, Load8(bias, v));
#pragma unroll
    for (int j = 0; j < kVector; ++j) gradient.v[j] *= GeluGradient(a.v[j]);
    Store8(dx, begin + v, gradient);
  }
}

// Rows of `gate_up`: num_vectors of gate, then as many of up.
template <typename Half>
__global__ void GatedForward(const Half* gate_up, Half* y,
                             int64_t num_vectors) {
  const int64_t begin = blockIdx.x * num_vectors;
  WEIR_FOR_ROW_VECTORS(v, num_vectors) {
    const Float8 gate = Load8(gate_up, 2 * begin + v);
    Float8 up = Load8(gate_up, 2 * begin + num_vectors + v);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      up.v[j] *= gate.v[j] * Sigmoid(gate.v[j]);
    }
    Store8(y, begin + v, up);
  }
}

template <typename Half>
__global__ void GatedBackward(const Half* dy, const Half* gate_up,
                              Half* d_gate_up, int64_t num_vectors) {
  const int64_t begin = blockIdx.x * num_vectors;
  WEIR_FOR_ROW_VECTORS(v, num_vectors) {
    const Float8 gradient = Load8(dy, begin + v);
    Float8 gate = Load8(gate_up, 2 * begin + v);
    Float8 up = Load8(gate_up, 2 * begin + num_vectors + v);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      const float g = gate.v[j], s = Sigmoid(g);
      gate.v[j] = gradient.v[j] * up.v[j] * s * (1 + g * (1 - s));
      up.v[j] = gradient.v[j] * g * s;
    }
    Store8(d_gate_up, 2 * begin + v, gate);
    Store8(d_gate_up, 2 * begin + num_vectors + v, up);
  }
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_ELEMENTWISE_CUH_
