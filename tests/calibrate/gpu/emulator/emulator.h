// SPDX-License-Identifier: Apache-2.0
// Runs CUDA kernels on the host. Include it before the kernels' sources. It
// defines the CUDA names that kernels use and runs a grid as fibers, one per
// thread.
//
// The emulator is made to find bugs. Between barriers, threads run in a random
// order and warps far apart. Shared memory starts as NaN and ends at a page
// that must not be touched. An asynchronous copy overwrites its target with
// garbage at once and arrives when it is waited for. A barrier or warp
// operation that some threads do not reach is an error. The emulator does not
// model caches, timing, or the order of memory operations of different blocks
// (blocks run one by one, in a random order).
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

// Variables of the running thread.
// NOLINTBEGIN(readability-identifier-naming): CUDA's names.
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;
// NOLINTEND(readability-identifier-naming)

namespace weir::emulator {

// Sets the seed of the random order in later grids.
void SetSeed(uint64_t seed);

// Returns the error of the last Run that failed.
std::string LastError();

// Runs `kernel` once for each thread. Returns cudaErrorLaunchFailure if it
// breaks a rule.
cudaError_t Run(int64_t num_blocks, int threads, int shared_bytes,
                const std::function<void()>& kernel);

// Sets the step of the emulated timer. Each read advances the timer by one
// step. All blocks start at the same time, as if they ran in parallel.
void SetTimerStep(uint64_t nanoseconds);
// Returns the end of the last block of the last grid, counted from the grid's
// start.
uint64_t GridNanoseconds();
// Calls `look` at each read of the timer with the nanoseconds since the block's
// start. Null: no calls.
void OnTimerRead(std::function<void(uint64_t nanoseconds)> look);

// The functions below implement CUDA's names and are called by a thread.

uint64_t GlobalNanoseconds();
void Sleep(unsigned nanoseconds);

void* SharedMemory();
void BlockBarrier();
[[noreturn]] void Fail(const std::string& why);

// Waits for all threads of the warp. The last thread to arrive calls run(all 32
// threads' `mine`, by lane). `name` must be the same for all threads.
using WarpFunction = void (*)(void* const* lanes);
void WarpTogether(const char* name, void* mine, WarpFunction run);

// Copies zeros if not `valid`. The copy is complete after the wait that covers
// it.
void CopyAsync(void* shared, const void* global, int num_bytes, bool valid);
void CommitCopies();
void WaitCopies(int num_pending);  // all but the last num_pending commits

}  // namespace weir::emulator

#define __launch_bounds__(...)
#define __syncthreads() weir::emulator::BlockBarrier()

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

// NOLINTBEGIN(readability-identifier-naming, google-global-names-in-headers):
// CUDA's names.
inline void __syncwarp() {
  weir::emulator::WarpTogether("__syncwarp", nullptr, [](void* const*) {});
}
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
// NOLINTEND(readability-identifier-naming, google-global-names-in-headers)

#endif  // WEIR_TESTS_CALIBRATE_GPU_EMULATOR_EMULATOR_H_
