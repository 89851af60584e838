// SPDX-License-Identifier: Apache-2.0
// Training kernels that are not operations of a stage: optimizers other than
// Adam, weight prediction, sums of gradients, rounded messages. They process
// whole buffers: each thread has 4 or 8 neighboring elements.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_TRAINING_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_TRAINING_CUH_

#include "calibrate/gpu/kernels/adam_factors.cuh"
#include "calibrate/gpu/kernels/device.cuh"

namespace weir::calibrate {

// v = momentum v + g; w -= rate (velocity_weight v + gradient_weight g), where
// g is `scale` times the gradient.
struct MomentumFactors {
  float rate, momentum, velocity_weight, gradient_weight, scale;
};

__device__ __forceinline__ void MomentumElement(const MomentumFactors& f,
                                                float g, float& w, float& v) {
  g *= f.scale;
  v = f.momentum * v + g;
  w -= f.rate * (f.velocity_weight * v + f.gradient_weight * g);
}

template <typename Half>
__global__ void Momentum(float* gradient, float* master, float* velocity,
                         Half* weight, MomentumFactors f,
                         int64_t num_elements) {
  const int64_t i = GlobalThread();
  if (4 * i + 4 <= num_elements) {
    const float4 g = reinterpret_cast<const float4*>(gradient)[i];
    float4 w = reinterpret_cast<const float4*>(master)[i];
    float4 v = reinterpret_cast<const float4*>(velocity)[i];
    MomentumElement(f, g.x, w.x, v.x);
    MomentumElement(f, g.y, w.y, v.y);
    MomentumElement(f, g.z, w.z, v.z);
    MomentumElement(f, g.w, w.w, v.w);
    reinterpret_cast<float4*>(gradient)[i] = {0, 0, 0, 0};
    reinterpret_cast<float4*>(master)[i] = w;
    reinterpret_cast<float4*>(velocity)[i] = v;
    reinterpret_cast<uint2*>(weight)[i] = {Pair<Half>::Pack(w.x, w.y),
                                           Pair<Half>::Pack(w.z, w.w)};
    return;
  }
  for (int64_t j = 4 * i; j < num_elements; ++j) {
    MomentumElement(f, gradient[j], master[j], velocity[j]);
    weight[j] = Pair<Half>::FromFloat(master[j]);
    gradient[j] = 0;
  }
}

// Applies `change`, called with value and index, to each element. The last
// thread of a buffer has fewer elements.
template <typename Half, typename Change>
__device__ __forceinline__ void ChangeHalves(const Half* from, Half* to,
                                             int64_t num_elements,
                                             Change change) {
  const int64_t i = GlobalThread();
  if (kVector * i + kVector <= num_elements) {
    Float8 x = Load8(from, i);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      x.v[j] = change(x.v[j], kVector * i + j);
    }
    Store8(to, i, x);
    return;
  }
  for (int64_t j = kVector * i; j < num_elements; ++j) {
    to[j] = Pair<Half>::FromFloat(change(Pair<Half>::ToFloat(from[j]), j));
  }
}

// estimate = weight - far v
template <typename Half>
__global__ void EstimateByVelocity(const Half* weight, const float* velocity,
                                   Half* estimate, float far,
                                   int64_t num_elements) {
  ChangeHalves(weight, estimate, num_elements,
               [=](float w, int64_t j) { return w - far * velocity[j]; });
}

// estimate = weight - far (m / (sqrt(v) + epsilon) + weight_decay weight)
template <typename Half>
__global__ void EstimateByAdam(const Half* weight, const float* first,
                               const float* second, Half* estimate,
                               AdamFactors f, float far, int64_t num_elements) {
  ChangeHalves(weight, estimate, num_elements, [=](float w, int64_t j) {
    const float root = sqrtf(second[j] * f.second_correction) + f.epsilon;
    return w -
           far * (first[j] * f.first_correction / root + f.weight_decay * w);
  });
}

// average = decay average + (1 - decay) (now - before)
template <typename Half>
__global__ void MoveAverage(const Half* before, const Half* now, float* average,
                            float decay, int64_t num_elements) {
  const int64_t i = GlobalThread();
  if (kVector * i + kVector <= num_elements) {
    const Float8 old_weight = Load8(before, i), new_weight = Load8(now, i);
    Float8 moved = Load8(average, i);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      moved.v[j] = decay * moved.v[j] +
                   (1 - decay) * (new_weight.v[j] - old_weight.v[j]);
    }
    Store8(average, i, moved);
    return;
  }
  for (int64_t j = kVector * i; j < num_elements; ++j) {
    average[j] =
        decay * average[j] + (1 - decay) * (Pair<Half>::ToFloat(now[j]) -
                                            Pair<Half>::ToFloat(before[j]));
  }
}

static __global__ void AddTo(const float* addend, float* sum,
                             int64_t num_elements) {
  const int64_t i = GlobalThread();
  if (4 * i + 4 <= num_elements) {
    const float4 x = reinterpret_cast<const float4*>(addend)[i];
    float4 y = reinterpret_cast<const float4*>(sum)[i];
    y = {y.x + x.x, y.y + x.y, y.z + x.z, y.w + x.w};
    reinterpret_cast<float4*>(sum)[i] = y;
    return;
  }
  for (int64_t j = 4 * i; j < num_elements; ++j) sum[j] += addend[j];
}

static __global__ void BeginLargest(unsigned* largest) {
  if (threadIdx.x == 0) *largest = 0;
}

// Computes the largest magnitude as the bits of a float, which have the same
// order. Requires: `largest` is initially 0.
template <typename Half>
__global__ void LargestMagnitude(const Half* data, unsigned* largest,
                                 int64_t num_elements) {
  const int64_t i = GlobalThread();
  float most = 0;
  if (kVector * i + kVector <= num_elements) {
    const Float8 x = Load8(data, i);
#pragma unroll
    for (int j = 0; j < kVector; ++j) most = fmaxf(most, fabsf(x.v[j]));
  } else {
    for (int64_t j = kVector * i; j < num_elements; ++j) {
      most = fmaxf(most, fabsf(Pair<Half>::ToFloat(data[j])));
    }
  }
  most = BlockMax(most, SharedMemory<float>());
  if (threadIdx.x != 0) return;
  unsigned bits;
  memcpy(&bits, &most, 4);
  atomicMax(largest, bits);
}

// Rounds to the nearest of 2 levels + 1 values that extend to the largest
// magnitude.
template <typename Half>
__global__ void RoundToLevels(const Half* from, Half* to,
                              const unsigned* largest, float levels,
                              int64_t num_elements) {
  float most;
  memcpy(&most, largest, 4);
  ChangeHalves(from, to, num_elements, [=](float x, int64_t) {
    return most > 0 ? rintf(x / most * levels) / levels * most : x;
  });
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_TRAINING_CUH_
