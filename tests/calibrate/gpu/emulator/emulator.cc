// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/gpu/emulator/emulator.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "tests/calibrate/gpu/emulator/fiber.h"
#include "tests/calibrate/gpu/emulator/guarded_memory.h"

namespace weir::emulator {
namespace {

constexpr int kWarp = 32;
constexpr size_t kStackBytes = 128 << 10;

struct AsyncCopy {
  unsigned char* to;
  const unsigned char* from;  // null: zeros
  int num_bytes;
};

enum class State { kReady, kAtWarp, kAtBarrier, kDone };

struct Thread {
  std::unique_ptr<Fiber> fiber;
  State state = State::kReady;
  std::deque<std::vector<AsyncCopy>> commits;
  std::vector<AsyncCopy> copies;  // not yet committed
};

struct Warp {
  int num_waiting = 0;
  const char* name = nullptr;
  std::array<void*, kWarp> lanes{};
};

struct Block {
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  int num_at_barrier = 0, num_done = 0, current = 0;
  std::string error;
};

// Only one grid runs at a time, in one thread of the host.
Block* block = nullptr;
GuardedMemory* shared_memory = nullptr;
std::mt19937_64 random_source(1);
std::string last_error;

// An arbitrary time, as kernels must not assume that the timer starts at 0.
constexpr uint64_t kGridBegin = 1'700'000'000'123'456'789;
uint64_t timer_step = 32, block_nanoseconds = 0, grid_nanoseconds = 0;
std::function<void(uint64_t)> on_timer_read;

Thread& Current() { return block->threads[block->current]; }

void Yield(State state) {
  Current().state = state;
  Current().fiber->Leave();
}

// Runs the ready threads of a warp in a random order.
void RunWarp(int warp) {
  std::array<int, kWarp> lanes;
  std::iota(lanes.begin(), lanes.end(), warp * kWarp);
  std::shuffle(lanes.begin(), lanes.end(), random_source);
  for (int lane : lanes) {
    if (block->threads[lane].state != State::kReady) continue;
    block->current = lane;
    threadIdx = {static_cast<unsigned>(lane), 0, 0};
    block->threads[lane].fiber->Enter();
    if (!block->error.empty()) return;
  }
}

bool CanRun(int warp) {
  const int first = warp * kWarp;
  const auto begin = block->threads.begin() + first;
  return std::any_of(begin, begin + kWarp, [](const Thread& thread) {
    return thread.state == State::kReady;
  });
}

// Runs all threads of the block. A warp usually runs for as long as it can, so
// it gets far ahead of the others.
void RunThreads() {
  std::vector<int> ready;
  const int num_warps = static_cast<int>(block->warps.size());
  while (block->num_done < num_warps * kWarp) {
    ready.clear();
    for (int i = 0; i < num_warps; ++i) {
      if (CanRun(i)) ready.push_back(i);
    }
    if (ready.empty()) {
      block->error = "threads wait for others that never come";
      return;
    }
    const int warp = ready[random_source() % ready.size()];
    do {
      RunWarp(warp);
      if (!block->error.empty()) return;
    } while (CanRun(warp) && random_source() % 64 != 0);
  }
}

void RunBlock(int threads, const std::function<void()>& kernel) {
  block->threads.resize(threads);
  block->warps.assign(threads / kWarp, Warp());
  block->num_at_barrier = block->num_done = 0;
  for (Thread& thread : block->threads) {
    thread.state = State::kReady;
    thread.commits.clear();
    thread.copies.clear();
    if (thread.fiber == nullptr) {
      thread.fiber = std::make_unique<Fiber>(kStackBytes);
    }
    thread.fiber->Start([&kernel] {
      kernel();
      ++block->num_done;
      Yield(State::kDone);
    });
  }
  RunThreads();
}

}  // namespace

void SetSeed(uint64_t seed) { random_source.seed(seed); }
std::string LastError() { return last_error; }
void SetTimerStep(uint64_t nanoseconds) { timer_step = nanoseconds; }
uint64_t GridNanoseconds() { return grid_nanoseconds; }
void OnTimerRead(std::function<void(uint64_t)> look) {
  on_timer_read = std::move(look);
}
uint64_t GlobalNanoseconds() {
  block_nanoseconds += timer_step;
  if (on_timer_read) on_timer_read(block_nanoseconds);
  return kGridBegin + block_nanoseconds;
}
// Rounds up to the timer's next step.
void Sleep(unsigned nanoseconds) {
  block_nanoseconds += (nanoseconds + timer_step - 1) / timer_step * timer_step;
}
void* SharedMemory() { return shared_memory->data(); }

void Fail(const std::string& why) {
  block->error = why;
  Yield(State::kDone);
  std::abort();  // never reached
}

void BlockBarrier() {
  if (++block->num_at_barrier < static_cast<int>(block->threads.size())) {
    Yield(State::kAtBarrier);
    return;
  }
  block->num_at_barrier = 0;
  for (Thread& thread : block->threads) thread.state = State::kReady;
  Yield(State::kReady);
}

void WarpTogether(const char* name, void* mine, WarpFunction run) {
  Warp& warp = block->warps[block->current / kWarp];
  if (warp.num_waiting > 0 && warp.name != name &&
      strcmp(warp.name, name) != 0) {
    Fail(std::string("a warp is apart: ") + warp.name + " and " + name);
  }
  warp.name = name;
  warp.lanes[block->current % kWarp] = mine;
  if (++warp.num_waiting < kWarp) {
    Yield(State::kAtWarp);
    return;
  }
  run(warp.lanes.data());
  warp.num_waiting = 0;
  const int first = block->current / kWarp * kWarp;
  for (int i = 0; i < kWarp; ++i) {
    block->threads[first + i].state = State::kReady;
  }
  Yield(State::kReady);
}

void CopyAsync(void* shared, const void* global, int num_bytes, bool valid) {
  if (reinterpret_cast<uintptr_t>(shared) % num_bytes != 0 ||
      reinterpret_cast<uintptr_t>(global) % num_bytes != 0) {
    Fail("cp.async: not aligned");
  }
  memset(shared, 0xFF, num_bytes);
  Current().copies.push_back(
      {static_cast<unsigned char*>(shared),
       valid ? static_cast<const unsigned char*>(global) : nullptr, num_bytes});
}

void CommitCopies() {
  Current().commits.push_back(std::move(Current().copies));
  Current().copies.clear();
}

void WaitCopies(int num_pending) {
  auto& commits = Current().commits;
  while (static_cast<int>(commits.size()) > num_pending) {
    for (const AsyncCopy& copy : commits.front()) {
      if (copy.from == nullptr) {
        memset(copy.to, 0, copy.num_bytes);
      } else {
        memcpy(copy.to, copy.from, copy.num_bytes);
      }
    }
    commits.pop_front();
  }
}

cudaError_t Run(int64_t num_blocks, int threads, int shared_bytes,
                const std::function<void()>& kernel) {
  if (threads <= 0 || threads > 1024) return cudaErrorInvalidConfiguration;
  if (threads % kWarp != 0) return cudaErrorNotSupported;  // emulator's limit
  Block this_block;
  block = &this_block;
  GuardedMemory shared(shared_bytes);
  shared_memory = &shared;
  gridDim = dim3(static_cast<unsigned>(num_blocks));
  blockDim = dim3(threads);
  std::vector<unsigned> order(num_blocks);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), random_source);
  grid_nanoseconds = 0;
  for (unsigned index : order) {
    block_nanoseconds = 0;
    blockIdx = {index, 0, 0};
    shared.Poison();
    RunBlock(threads, kernel);
    grid_nanoseconds = std::max(grid_nanoseconds, block_nanoseconds);
    if (this_block.error.empty() && !shared.Intact()) {
      this_block.error = "written before or after shared memory";
    }
    if (this_block.error.empty()) continue;
    last_error = this_block.error;
    fprintf(stderr, "block %u, thread %d: %s\n", index, this_block.current,
            last_error.c_str());
    return cudaErrorLaunchFailure;
  }
  return cudaSuccess;
}

}  // namespace weir::emulator
