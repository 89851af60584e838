// SPDX-License-Identifier: Apache-2.0
// Runs CUDA kernels on the host, to be included before their sources: the CUDA
// names that those use, and a grid of fibers behind them, one per thread.
//
// It is made to find faults. Between barriers threads run in a random order,
// warps far apart; shared memory begins as NaN and ends at a page that must not
// be touched; an asynchronous copy ruins its target at once and arrives when it
// is waited for; a barrier or a warp's operation that not all threads reach is
// an error. What it cannot see: caches, timing, the order of blocks' memory
// operations among each other (blocks run one by one, in a random order).
#ifndef WEIR_TESTS_CALIBRATE_GPU_EMULATOR_EMULATOR_H_
#define WEIR_TESTS_CALIBRATE_GPU_EMULATOR_EMULATOR_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

#define WEIR_CUDA_EMULATOR 1

// Of the thread that runs.
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

namespace weir::emulator {

// Grids that follow draw their order from it.
void SetSeed(uint64_t seed);

// What went wrong in the last Run that failed.
std::string LastError();

// Runs `kernel` once for each thread; cudaErrorLaunchFailure where it breaks a
// rule.
cudaError_t Run(int64_t num_blocks, int threads, int shared_bytes,
                const std::function<void()>& kernel);

// The pretended timer, in nanoseconds: a read takes one step of it. Each block
// begins at the same moment, as if all ran at once.
void SetTimerStep(uint64_t nanoseconds);
// When the last block of the last grid ended, counted from its beginning.
uint64_t GridNanoseconds();
// Called at each read with what has passed of the block; null: not.
void OnTimerRead(std::function<void(uint64_t nanoseconds)> look);

// ---- For the stand-ins of CUDA's names, called by a thread.

uint64_t GlobalNanoseconds();
void Sleep(unsigned nanoseconds);

void* SharedMemory();
void BlockBarrier();
[[noreturn]] void Fail(const std::string& why);

// The warp's threads come together; the last to come calls
// run(all 32 threads' `mine`, by lane). `name` must be the same for all.
using WarpFunction = void (*)(void* const* lanes);
void WarpTogether(const char* name, void* mine, WarpFunction run);

// Zeros where not `valid`; done by the wait that covers it.
void CopyAsync(void* shared, const void* global, int num_bytes, bool valid);
void CommitCopies();
void WaitCopies(int num_pending);  // all but the last num_pending commits

}  // namespace weir::emulator

#define __launch_bounds__(...)
#define __syncthreads() weir::emulator::BlockBarrier()

inline void __syncwarp() {
  weir::emulator::WarpTogether("__syncwarp", nullptr, [](void* const*) {});
}

namespace weir::emulator {
template <typename T>
struct Shuffle {
  T value, result;
  int from;
};
template <typename T>
T ShuffleFrom(const char* name, uint32_t mask, T value, int from) {
  if (mask != 0xFFFFFFFFu) Fail(std::string(name) + ": not the whole warp");
  Shuffle<T> mine = {value, value, from & 31};
  WarpTogether(name, &mine, [](void* const* lanes) {
    for (int i = 0; i < 32; ++i) {
      auto* to = static_cast<Shuffle<T>*>(lanes[i]);
      to->result = static_cast<Shuffle<T>*>(lanes[to->from])->value;
    }
  });
  return mine.result;
}
}  // namespace weir::emulator

template <typename T>
T __shfl_xor_sync(uint32_t mask, T value, int distance) {
  return weir::emulator::ShuffleFrom("__shfl_xor_sync", mask, value,
                                     static_cast<int>(threadIdx.x) ^ distance);
}
template <typename T>
T __shfl_sync(uint32_t mask, T value, int from) {
  return weir::emulator::ShuffleFrom("__shfl_sync", mask, value, from);
}
using std::min;
inline float atomicAdd(float* sum, float x) {
  const float before = *sum;
  *sum += x;
  return before;
}

inline unsigned atomicMax(unsigned* largest, unsigned x) {
  const unsigned before = *largest;
  *largest = before > x ? before : x;
  return before;
}

#endif  // WEIR_TESTS_CALIBRATE_GPU_EMULATOR_EMULATOR_H_
