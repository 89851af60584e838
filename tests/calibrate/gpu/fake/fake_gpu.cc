// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/gpu/fake/fake_gpu.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <utility>

namespace weir::calibrate {
namespace {

// A copy between device and pinned memory that the host has not yet waited for.
struct PinnedCopy {
  void* pinned;
  std::vector<uint8_t> bytes;  // to be written there, or read from there
  bool to_host;
  int stream;
  uint64_t at;
};
std::vector<PinnedCopy> pinned_copies;
std::map<void*, size_t> pinned_memory;

bool IsPinned(const void* memory) {
  auto after = pinned_memory.upper_bound(const_cast<void*>(memory));
  if (after == pinned_memory.begin()) return false;
  --after;
  return static_cast<const char*>(memory) <
         static_cast<const char*>(after->first) + after->second;
}

// Reports a fault if the host changed pinned memory that is still being read.
void CheckPinned() {
  for (const PinnedCopy& copy : pinned_copies) {
    if (!copy.to_host &&
        std::memcmp(copy.pinned, copy.bytes.data(), copy.bytes.size()) != 0) {
      Gpu().faults.push_back("pinned memory changes while it is read");
    }
  }
}

// Completes the copies that the calling thread has seen to end, or all if
// `seen` is null.
void EndPinned(const fake::Order* seen) {
  CheckPinned();
  std::erase_if(pinned_copies, [seen](const PinnedCopy& copy) {
    if (seen != nullptr) {
      const auto found = seen->find(copy.stream);
      if (found == seen->end() || found->second < copy.at) return false;
    }
    if (copy.to_host) {
      std::memcpy(copy.pinned, copy.bytes.data(), copy.bytes.size());
    }
    return true;
  });
}

// Completes copies to pinned memory before the device reads it.
void EndCopiesTo(const void* pinned, size_t num_bytes) {
  const auto* begin = static_cast<const char*>(pinned);
  std::erase_if(pinned_copies, [=](const PinnedCopy& copy) {
    const auto* other = static_cast<const char*>(copy.pinned);
    if (!copy.to_host || other >= begin + num_bytes ||
        begin >= other + copy.bytes.size()) {
      return false;
    }
    std::memcpy(copy.pinned, copy.bytes.data(), copy.bytes.size());
    return true;
  });
}

// Copies of this size only flush the cache. They take simulated time but move
// no data.
constexpr size_t kFlushBytes = size_t{64} << 20;

}  // namespace

FakeState& Gpu() {
  static auto& gpu = *new FakeState;
  return gpu;
}

std::recursive_mutex& GpuMutex() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}

cudaError_t& LastError() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

void AddPinned(void* memory, size_t bytes) { pinned_memory[memory] = bytes; }

void RemovePinned(void* memory) {
  EndPinned(nullptr);  // waits for the device
  pinned_memory.erase(memory);
}

void Saw(const fake::Order& order) {
  fake::Order& seen = fake::SeenByHost();
  fake::Merge(order, &seen);
  EndPinned(&seen);
  // Threads share which work they have seen to end.
  static auto& seen_by_any = *new fake::Order;
  fake::Merge(order, &seen_by_any);
  for (const CUstream_st* stream : Gpu().streams) {
    const auto last = stream->order.find(stream->id);
    if (last != stream->order.end() && seen_by_any[stream->id] < last->second) {
      return;
    }
  }
  EndPinned(nullptr);
  fake::ForgetAll();
}

void CopyBytes(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  if (bytes >= kFlushBytes) return;
  if (IsPinned(from)) EndCopiesTo(from, bytes);
  const auto* begin = static_cast<const uint8_t*>(from);
  const uint64_t at = stream->order[stream->id];
  if (!IsPinned(to)) {
    std::memcpy(to, from, bytes);
    if (!IsPinned(from)) return;
    pinned_copies.push_back({const_cast<void*>(from),
                             {begin, begin + bytes},
                             false,
                             stream->id,
                             at});
    return;
  }
  EndCopiesTo(to, bytes);
  pinned_copies.push_back({to, {begin, begin + bytes}, true, stream->id, at});
  std::memset(to, 0xA5, bytes);  // until the host has waited for it
}

void RunNode(cudaStream_t stream, const CUgraph_st::Node& node) {
  if (!fake::Note(stream->id, node.accesses, &stream->order)) return;
  node.work();
}

void Enqueue(cudaStream_t stream, double seconds, std::function<void()> work,
             fake::Accesses accesses) {
  FakeState& gpu = Gpu();
  const std::lock_guard<std::recursive_mutex> lock(GpuMutex());
  gpu.now += 1e-6;
  if (stream->captured != nullptr) {
    stream->captured->nodes.push_back(
        {seconds, std::move(work), std::move(accesses)});
    return;
  }
  CheckPinned();
  RunNode(stream, {seconds, std::move(work), std::move(accesses)});
  if (gpu.hangs_from >= 0 && gpu.num_kernels >= gpu.hangs_from) {
    gpu.hangs = true;
  }
  if (gpu.hangs) seconds = std::numeric_limits<double>::infinity();
  seconds = Slowed(stream, seconds);
  stream->busy_until = std::max(stream->busy_until, gpu.now) + seconds;
}

}  // namespace weir::calibrate

CUstream_st::CUstream_st()
    : id([] {
        static std::atomic<int> next{0};
        return next++;
      }()) {}
