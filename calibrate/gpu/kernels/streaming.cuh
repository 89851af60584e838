// SPDX-License-Identifier: Apache-2.0
// Kernels over whole buffers: optimizer, clears, copies, random data. Each
// thread processes 4 or 8 neighboring elements at a time; only the last of a
// buffer may have fewer.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_STREAMING_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_STREAMING_CUH_

#include "calibrate/execute/stage/dropout_mask.h"
#include "calibrate/execute/stage/stage_op.h"
#include "calibrate/gpu/kernels/adam_factors.cuh"
#include "calibrate/gpu/kernels/device.cuh"

namespace weir::calibrate {

__device__ __forceinline__ void AdamElement(const AdamFactors& f, float g,
                                            float& w, float& m, float& v) {
  g *= f.scale;
  m = f.beta1 * m + (1 - f.beta1) * g;
  v = f.beta2 * v + (1 - f.beta2) * g * g;
  const float root = sqrtf(v * f.second_correction) + f.epsilon;
  w -= f.rate * (m * f.first_correction / root + f.weight_decay * w);
}

template <typename Half>
struct AdamTensors {
  float *gradient, *master, *first, *second;
  Half* weight;
};

// Moves 34 bytes per parameter: 16 read, 14 written, 4 to clear the gradient.
template <typename Half>
__global__ void Adam(AdamTensors<Half> t, AdamFactors factors,
                     int64_t num_elements) {
  const int64_t i = GlobalThread();
  if (4 * i + 4 <= num_elements) {
    const float4 g = reinterpret_cast<const float4*>(t.gradient)[i];
    float4 w = reinterpret_cast<const float4*>(t.master)[i];
    float4 m = reinterpret_cast<const float4*>(t.first)[i];
    float4 v = reinterpret_cast<const float4*>(t.second)[i];
    AdamElement(factors, g.x, w.x, m.x, v.x);
    AdamElement(factors, g.y, w.y, m.y, v.y);
    AdamElement(factors, g.z, w.z, m.z, v.z);
    AdamElement(factors, g.w, w.w, m.w, v.w);
    reinterpret_cast<float4*>(t.gradient)[i] = {0, 0, 0, 0};
    reinterpret_cast<float4*>(t.master)[i] = w;
    reinterpret_cast<float4*>(t.first)[i] = m;
    reinterpret_cast<float4*>(t.second)[i] = v;
    reinterpret_cast<uint2*>(t.weight)[i] = {Pair<Half>::Pack(w.x, w.y),
                                             Pair<Half>::Pack(w.z, w.w)};
    return;
  }
  for (int64_t j = 4 * i; j < num_elements; ++j) {
    AdamElement(factors, t.gradient[j], t.master[j], t.first[j], t.second[j]);
    t.weight[j] = Pair<Half>::FromFloat(t.master[j]);
    t.gradient[j] = 0;
  }
}

// A reference for other kernels: each thread has four loads in flight to hide
// memory latency.
constexpr int kCopyVectors = 4;

static __global__ void Copy(const unsigned char* from, unsigned char* to,
                            int64_t bytes) {
  const int64_t num_vectors = bytes / 16;
  const int64_t begin =
      static_cast<int64_t>(blockIdx.x) * blockDim.x * kCopyVectors +
      threadIdx.x;
  uint4 words[kCopyVectors];
#pragma unroll
  for (int j = 0; j < kCopyVectors; ++j) {
    const int64_t i = begin + j * static_cast<int64_t>(blockDim.x);
    if (i < num_vectors) words[j] = LoadWords(from, i);
  }
#pragma unroll
  for (int j = 0; j < kCopyVectors; ++j) {
    const int64_t i = begin + j * static_cast<int64_t>(blockDim.x);
    if (i < num_vectors) reinterpret_cast<uint4*>(to)[i] = words[j];
    if (i != num_vectors) continue;
    for (int64_t k = 16 * i; k < bytes; ++k) to[k] = from[k];
  }
}

static __global__ void Clear(unsigned char* data, int64_t bytes) {
  const int64_t i = GlobalThread();
  if (16 * i + 16 <= bytes) {
    reinterpret_cast<uint4*>(data)[i] = {0, 0, 0, 0};
    return;
  }
  for (int64_t j = 16 * i; j < bytes; ++j) data[j] = 0;
}

static __global__ void Empty() {}

// Returns two normally distributed numbers from two words (Box & Muller 1958).
__device__ __forceinline__ float2 Normal2(uint32_t a, uint32_t b,
                                          float deviation) {
  constexpr float kUnit = 1.0F / 4294967296.0F;
  // In (0, 1]: the largest words round to 1, the smallest is 2^-33.
  const float uniform = static_cast<float>(a) * kUnit + 0.5F * kUnit;
  const float radius = deviation * sqrtf(-2 * kLn2 * log2f(uniform));
  const float angle = 6.2831853F * (static_cast<float>(b) * kUnit);
  return {radius * cosf(angle), radius * sinf(angle)};
}

__device__ __forceinline__ float AsElement(float x, float) { return x; }
__device__ __forceinline__ __nv_bfloat16 AsElement(float x, __nv_bfloat16) {
  return __float2bfloat16_rn(x);
}
__device__ __forceinline__ __half AsElement(float x, __half) {
  return __float2half_rn(x);
}

template <typename Element>
__global__ void FillNormal(Element* data, int64_t num_elements, float deviation,
                           uint64_t seed) {
  const int64_t i = GlobalThread();
  if (8 * i >= num_elements) return;
  const Philox4 a = RandomWords(seed, 2 * i), b = RandomWords(seed, 2 * i + 1);
  const float2 x = Normal2(a.words[0], a.words[1], deviation),
               y = Normal2(a.words[2], a.words[3], deviation),
               z = Normal2(b.words[0], b.words[1], deviation),
               w = Normal2(b.words[2], b.words[3], deviation);
  const Float8 values = {{x.x, x.y, y.x, y.y, z.x, z.y, w.x, w.y}};
  if (8 * i + 8 <= num_elements) {
    Store8(data, i, values);
    return;
  }
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    if (8 * i + j < num_elements) {
      data[8 * i + j] = AsElement(values.v[j], Element());
    }
  }
}

static __global__ void FillTokens(int32_t* data, int64_t num_elements,
                                  int32_t limit, uint64_t seed) {
  const int64_t i = GlobalThread();
  const Philox4 random = RandomWords(seed, i);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (4 * i + j >= num_elements) return;
    // The high word of the product: uniform to within 2^-32 limit.
    data[4 * i + j] = static_cast<int32_t>(
        static_cast<uint64_t>(random.words[j]) * limit >> 32);
  }
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_STREAMING_CUH_
