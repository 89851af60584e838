// SPDX-License-Identifier: Apache-2.0
// A copy at a given rate.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_PACED_COPY_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_PACED_COPY_CUH_

#include "calibrate/gpu/kernels/device.cuh"

namespace weir::calibrate {

// Small blocks, so that many links fit on few multiprocessors.
constexpr int kPacedThreads = 128;
// Loads in flight per thread, to hide memory latency.
constexpr int kPacedVectors = 8;
constexpr int64_t kPacedChunk = 16 * kPacedThreads * kPacedVectors;

#ifdef __CUDACC__
// A clock that is the same on all multiprocessors, independent of their
// frequency.
__device__ __forceinline__ uint64_t GlobalNanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}
__device__ __forceinline__ void Sleep(unsigned nanoseconds) {
  __nanosleep(nanoseconds);
}
#else
inline uint64_t GlobalNanoseconds() { return emulator::GlobalNanoseconds(); }
inline void Sleep(unsigned nanoseconds) { emulator::Sleep(nanoseconds); }
#endif

__device__ __forceinline__ void WaitUntil(uint64_t nanoseconds) {
  for (uint64_t now = GlobalNanoseconds(); now < nanoseconds;
       now = GlobalNanoseconds()) {
    // A sleep may last twice as long as requested.
    if (nanoseconds - now > 1000) {
      Sleep(static_cast<unsigned>(min(nanoseconds - now, uint64_t{8000}) / 4));
    }
  }
}

// Called by all threads of the block. Requires: n <= kPacedChunk.
__device__ __forceinline__ void CopyChunk(const unsigned char* from,
                                          unsigned char* to, int n) {
  const int thread = static_cast<int>(threadIdx.x);
  const auto address = reinterpret_cast<uintptr_t>(from);
  if ((address - reinterpret_cast<uintptr_t>(to)) % 16 != 0) {
    for (int i = thread; i < n; i += kPacedThreads) to[i] = from[i];
    return;
  }
  const int head = min(n, static_cast<int>(-address % 16));
  const int num_vectors = (n - head) / 16;
  if (thread < head) to[thread] = from[thread];
  for (int i = head + 16 * num_vectors + thread; i < n; i += kPacedThreads) {
    to[i] = from[i];
  }
  uint4 words[kPacedVectors];
#pragma unroll
  for (int j = 0; j < kPacedVectors; ++j) {
    const int i = thread + j * kPacedThreads;
    if (i < num_vectors) words[j] = LoadWords(from + head, i);
  }
#pragma unroll
  for (int j = 0; j < kPacedVectors; ++j) {
    const int i = thread + j * kPacedThreads;
    if (i < num_vectors) reinterpret_cast<uint4*>(to + head)[i] = words[j];
  }
}

// Blocks take chunks in turn. A block proceeds from a chunk to its next one
// when a link would have moved the whole chunk. So the first chunks are copied
// during the latency, and the time to copy is included in the link time. Blocks
// begin almost together, and each measures from its own start.
static __global__ void __launch_bounds__(kPacedThreads)
    CopyPaced(const unsigned char* from, unsigned char* to, int64_t bytes,
              double latency_nanoseconds, double nanoseconds_per_byte) {
  const uint64_t begin = threadIdx.x == 0 ? GlobalNanoseconds() : 0;
  int64_t first = blockIdx.x * kPacedChunk;
  do {  // a copy of nothing also has a latency
    const int64_t end = min(first + kPacedChunk, bytes);
    CopyChunk(from + first, to + first, static_cast<int>(end - first));
    if (threadIdx.x == 0) {
      WaitUntil(begin + static_cast<uint64_t>(latency_nanoseconds +
                                              nanoseconds_per_byte *
                                                  static_cast<double>(end)));
    }
    __syncthreads();
    first += gridDim.x * kPacedChunk;
  } while (first < bytes);
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_PACED_COPY_CUH_
