// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/gpu/spin.h"

namespace weir::calibrate {
namespace {

__device__ uint64_t Now() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

__global__ void Spin(uint64_t nanoseconds, SpinRecord* records) {
  const uint64_t begin = Now();
  uint64_t now = begin;
  while (now - begin < nanoseconds) now = Now();
  if (threadIdx.x != 0) return;
  uint32_t multiprocessor;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  records[blockIdx.x] = {begin, now, multiprocessor};
}

}  // namespace

cudaError_t LaunchSpin(cudaStream_t stream, int num_blocks, double seconds,
                       SpinRecord* records) {
  Spin<<<num_blocks, 256, 0, stream>>>(static_cast<uint64_t>(1e9 * seconds),
                                       records);
  return cudaGetLastError();
}

}  // namespace weir::calibrate
