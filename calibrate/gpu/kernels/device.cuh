// SPDX-License-Identifier: Apache-2.0
// Building blocks of all kernels: vectors of 8 halves, reductions over warps
// and blocks, shared memory of a block. Without nvcc the same sources compile
// for the host with the CUDA names of tests/calibrate/gpu/emulator/emulator.h,
// which must be included first.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_DEVICE_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_DEVICE_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#if !defined(__CUDACC__) && !defined(WEIR_CUDA_EMULATOR)
#error "for nvcc, or behind the emulator"
#endif

namespace weir::calibrate {

constexpr int kWarpSize = 32;
constexpr int kVector = 8;  // halves in 16 bytes

#ifdef __CUDACC__
// All shared memory is dynamic; its size is set at launch.
template <typename T>
__device__ __forceinline__ T* SharedMemory() {
  extern __shared__ uint4 weir_shared_memory[];
  return reinterpret_cast<T*>(weir_shared_memory);
}
// Single instructions with an error of 2 units in the last place. exp2f would
// need three more to handle subnormal results, which attention does not need.
__device__ __forceinline__ float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float Divide(float a, float b) {
  return __fdividef(a, b);
}
__device__ __forceinline__ float ReciprocalRoot(float x) { return rsqrtf(x); }
#else
template <typename T>
T* SharedMemory() {
  return reinterpret_cast<T*>(emulator::SharedMemory());
}
inline float Exp2(float x) { return std::exp2(x); }
inline float Divide(float a, float b) { return a / b; }
inline float ReciprocalRoot(float x) { return 1 / std::sqrt(x); }
#endif

constexpr float kLog2E = 1.4426950408889634F;
constexpr float kLn2 = 0.6931471805599453F;

__device__ __forceinline__ float Exp(float x) { return Exp2(x * kLog2E); }

template <typename Half>
struct Pair;
template <>
struct Pair<__nv_bfloat16> {
  static __device__ __forceinline__ uint32_t Pack(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    uint32_t word;
    memcpy(&word, &pair, 4);
    return word;
  }
  static __device__ __forceinline__ float2 Unpack(uint32_t word) {
    const uint32_t low = word << 16, high = word & 0xFFFF0000u;
    float2 pair;
    memcpy(&pair.x, &low, 4);
    memcpy(&pair.y, &high, 4);
    return pair;
  }
  static __device__ __forceinline__ float ToFloat(__nv_bfloat16 x) {
    return __bfloat162float(x);
  }
  static __device__ __forceinline__ __nv_bfloat16 FromFloat(float x) {
    return __float2bfloat16_rn(x);
  }
};
template <>
struct Pair<__half> {
  static __device__ __forceinline__ uint32_t Pack(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    uint32_t word;
    memcpy(&word, &pair, 4);
    return word;
  }
  static __device__ __forceinline__ float2 Unpack(uint32_t word) {
    __half2 pair;
    memcpy(static_cast<void*>(&pair), &word, 4);
    return __half22float2(pair);
  }
  static __device__ __forceinline__ float ToFloat(__half x) {
    return __half2float(x);
  }
  static __device__ __forceinline__ __half FromFloat(float x) {
    return __float2half_rn(x);
  }
};

// 8 neighboring elements, as floats.
struct Float8 {
  float v[kVector];
};

template <typename Half>
__device__ __forceinline__ Float8 Unpack(const uint4& words) {
  const float2 a = Pair<Half>::Unpack(words.x), b = Pair<Half>::Unpack(words.y),
               c = Pair<Half>::Unpack(words.z), d = Pair<Half>::Unpack(words.w);
  return {{a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y}};
}
template <typename Half>
__device__ __forceinline__ uint4 Pack(const Float8& x) {
  uint4 words;
  words.x = Pair<Half>::Pack(x.v[0], x.v[1]);
  words.y = Pair<Half>::Pack(x.v[2], x.v[3]);
  words.z = Pair<Half>::Pack(x.v[4], x.v[5]);
  words.w = Pair<Half>::Pack(x.v[6], x.v[7]);
  return words;
}

// Loads the vector-th 16 bytes (halves) or 32 bytes (floats) after `data`.
__device__ __forceinline__ uint4 LoadWords(const void* data, int64_t vector) {
  return static_cast<const uint4*>(data)[vector];
}
template <typename Half>
__device__ __forceinline__ Float8 Load8(const Half* data, int64_t vector) {
  return Unpack<Half>(LoadWords(data, vector));
}
template <typename Half>
__device__ __forceinline__ void Store8(Half* data, int64_t vector,
                                       const Float8& x) {
  reinterpret_cast<uint4*>(data)[vector] = Pack<Half>(x);
}
__device__ __forceinline__ Float8 Load8(const float* data, int64_t vector) {
  const float4 a = reinterpret_cast<const float4*>(data)[2 * vector];
  const float4 b = reinterpret_cast<const float4*>(data)[2 * vector + 1];
  return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}
__device__ __forceinline__ void Store8(float* data, int64_t vector,
                                       const Float8& x) {
  auto* out = reinterpret_cast<float4*>(data) + 2 * vector;
  out[0] = {x.v[0], x.v[1], x.v[2], x.v[3]};
  out[1] = {x.v[4], x.v[5], x.v[6], x.v[7]};
}

__device__ __forceinline__ int64_t GlobalThread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

constexpr uint32_t kFullWarp = 0xFFFFFFFFu;

__device__ __forceinline__ float WarpSum(float x) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(kFullWarp, x, distance);
  }
  return x;
}
__device__ __forceinline__ float WarpMax(float x) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kFullWarp, x, distance));
  }
  return x;
}

// Returns to all threads the result of `Reduce` over the warps' values; has one
// barrier. `scratch` has one float per warp and is free again after the next
// barrier, so that a loop can alternate between two of them.
template <typename Reduce>
__device__ __forceinline__ float BlockReduce(float x, float neutral,
                                             float* scratch, Reduce reduce) {
  const unsigned lane = threadIdx.x % kWarpSize;
  x = reduce(x);
  if (lane == 0) scratch[threadIdx.x / kWarpSize] = x;
  __syncthreads();
  return reduce(lane < blockDim.x / kWarpSize ? scratch[lane] : neutral);
}
struct Sum {
  __device__ __forceinline__ float operator()(float x) const {
    return WarpSum(x);
  }
};
struct Max {
  __device__ __forceinline__ float operator()(float x) const {
    return WarpMax(x);
  }
};
__device__ __forceinline__ float BlockSum(float x, float* scratch) {
  return BlockReduce(x, 0.0F, scratch, Sum());
}
__device__ __forceinline__ float BlockMax(float x, float* scratch) {
  return BlockReduce(x, -INFINITY, scratch, Max());
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_DEVICE_CUH_
