// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "tests/calibrate/gpu/fake/fake.h"

struct CUevent_st {
  double at = 0;
  weir::fake::Order order;
};
struct CUmemPoolHandle_st {
  uint64_t used = 0, used_high = 0, max_bytes = 0;
};

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

// Copies of this size only flush the cache. They take simulated time but move
// no data.
constexpr size_t kFlushBytes = size_t{64} << 20;

void Copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
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

}  // namespace

FakeState& Gpu() {
  static auto& gpu = *new FakeState;
  return gpu;
}

std::recursive_mutex& GpuMutex() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
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

using weir::calibrate::Enqueue;
using weir::calibrate::Gpu;
using weir::calibrate::GpuMutex;
using weir::fake::Accesses;
using weir::fake::IsThere;
using weir::fake::Reads;
using weir::fake::Writes;

namespace {

constexpr int64_t kContextBytes = 400 << 20;
constexpr uint64_t kPoolStep = 512, kReserveStep = 2 << 20;
bool has_context = false;
thread_local cudaError_t last_error = cudaSuccess;

#define LOCK_FAKE const std::lock_guard<std::recursive_mutex> lock(GpuMutex())

cudaError_t Poll(double until, const weir::fake::Order& order) {
  LOCK_FAKE;
  Gpu().now += 1e-4;
  if (until <= Gpu().now) {
    weir::calibrate::Saw(order);
    return cudaSuccess;
  }
  return last_error = cudaErrorNotReady;  // as CUDA's queries do
}

// Returns the accesses to device and pinned memory. Other host memory is not
// checked.
Accesses Known(std::initializer_list<weir::fake::Access> accesses) {
  Accesses known;
  for (const auto& access : accesses) {
    if (IsThere(access.begin, access.num_bytes)) known.push_back(access);
  }
  return known;
}

cudaError_t Take(void** memory, size_t bytes, cudaStream_t stream = nullptr) {
  LOCK_FAKE;
  const auto rounded = static_cast<int64_t>((bytes + 255) / 256 * 256);
  if (Gpu().used_bytes + rounded > Gpu().total_bytes) {
    return cudaErrorMemoryAllocation;
  }
  *memory = std::aligned_alloc(256, rounded);
  // NaN until written. Larger blocks only prime pools and are never read.
  constexpr int64_t kTouched = int64_t{64} << 20;
  if (rounded < kTouched) std::memset(*memory, 0xFF, rounded);
  Gpu().used_bytes += rounded;
  Gpu().allocations[*memory] = rounded;
  weir::fake::NoteTaken(*memory, rounded, stream != nullptr ? stream->id : 0,
                        stream != nullptr ? &stream->order : nullptr);
  return cudaSuccess;
}

void GiveBack(void* memory, cudaStream_t stream = nullptr) {
  LOCK_FAKE;
  weir::fake::NoteGivenBack(memory, stream != nullptr ? stream->id : 0,
                            stream != nullptr ? &stream->order : nullptr);
  Gpu().used_bytes -= Gpu().allocations.at(memory);
  Gpu().allocations.erase(memory);
  std::free(memory);
}

std::map<void*, std::pair<CUmemPoolHandle_st*, uint64_t>> of_pools;

}  // namespace

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  *version = Gpu().driver_version;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "Fake GPU");
  properties->totalGlobalMem = Gpu().total_bytes;
  properties->major = 9;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrL2CacheSize
               ? 1000
               : static_cast<int>(Gpu().num_multiprocessors);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* bus_id, int, int) {
  std::strcpy(bus_id, "0000:3B:00.0");
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}
const char* cudaGetErrorName(cudaError_t code) {
  return code == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
                                           : "cudaErrorFake";
}
const char* cudaGetErrorString(cudaError_t) { return "fake"; }

cudaError_t cudaFree(void* memory) {
  if (!has_context) Gpu().used_bytes += kContextBytes;
  has_context = true;
  if (memory != nullptr) GiveBack(memory);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return Take(memory, bytes);
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = Gpu().total_bytes;
  *free = *total - Gpu().used_bytes;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                            cudaMemcpyKind, cudaStream_t stream) {
  LOCK_FAKE;
  Enqueue(
      stream, Gpu().copy_seconds + bytes / Gpu().copy_bytes_per_second,
      [=] { weir::calibrate::Copy(to, from, bytes, stream); },
      Known({Reads(from, bytes), Writes(to, bytes)}));
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes,
                       cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes,
                            cudaStream_t stream) {
  Enqueue(stream, 0, [=] { std::memset(to, byte, bytes); },
          {Writes(to, bytes)});
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  LOCK_FAKE;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0xFF, bytes);
  weir::calibrate::pinned_memory[*memory] = bytes;
  weir::fake::NoteTaken(*memory, static_cast<int64_t>(bytes), 0, nullptr);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  LOCK_FAKE;
  weir::calibrate::EndPinned(nullptr);  // waits for the device
  weir::calibrate::pinned_memory.erase(memory);
  weir::fake::NoteGivenBack(memory, 0, nullptr);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int byte, size_t width,
                              size_t height, cudaStream_t stream) {
  Enqueue(stream, 0, [=] {
    for (size_t row = 0; row < height; ++row) {
      std::memset(static_cast<char*>(to) + row * pitch, byte, width);
    }
  });
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool,
                              const cudaMemPoolProps* properties) {
  *pool = new CUmemPoolHandle_st;
  (*pool)->max_bytes = properties->maxSize;
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete pool;
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool,
                                    cudaMemPoolAttr attribute, void* value) {
  auto* number = static_cast<uint64_t*>(value);
  *number =
      attribute == cudaMemPoolAttrUsedMemCurrent ? pool->used : pool->used_high;
  if (attribute == cudaMemPoolAttrReservedMemHigh) {
    *number = (*number + kReserveStep - 1) / kReserveStep * kReserveStep;
  }
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool,
                                    cudaMemPoolAttr attribute, void*) {
  if (attribute == cudaMemPoolAttrUsedMemHigh) pool->used_high = pool->used;
  return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void** memory, size_t bytes,
                                    cudaMemPool_t pool, cudaStream_t stream) {
  LOCK_FAKE;
  const uint64_t rounded = (bytes + kPoolStep - 1) / kPoolStep * kPoolStep;
  if (pool->max_bytes > 0 && pool->used + rounded > pool->max_bytes) {
    return last_error = cudaErrorMemoryAllocation;
  }
  const cudaError_t code = Take(memory, bytes, stream);
  if (code != cudaSuccess) return code;
  of_pools[*memory] = {pool, rounded};
  pool->used += rounded;
  pool->used_high = std::max(pool->used_high, pool->used);
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  LOCK_FAKE;
  const auto found = of_pools.find(memory);
  if (found == of_pools.end()) return last_error = cudaErrorInvalidValue;
  const auto [pool, bytes] = found->second;
  pool->used -= bytes;
  of_pools.erase(memory);
  GiveBack(memory, stream);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  LOCK_FAKE;
  *stream = new CUstream_st;
  Gpu().streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  LOCK_FAKE;
  ++Gpu().num_destroyed;
  Gpu().streams.erase(stream);
  if (stream->part != nullptr) --stream->part->num_streams;
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  LOCK_FAKE;
  return Poll(stream->busy_until, stream->order);
}
cudaError_t cudaDeviceSynchronize() {
  LOCK_FAKE;
  for (const CUstream_st* stream : Gpu().streams) {
    Gpu().now = std::max(Gpu().now, stream->busy_until);
    weir::calibrate::Saw(stream->order);
  }
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  LOCK_FAKE;
  event->at = std::max(stream->busy_until, Gpu().now);
  event->order = stream->order;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned) {
  LOCK_FAKE;
  stream->busy_until = std::max(stream->busy_until, event->at);
  weir::fake::Merge(event->order, &stream->order);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  LOCK_FAKE;
  return Poll(event->at, event->order);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin,
                                 cudaEvent_t end) {
  LOCK_FAKE;
  *milliseconds = static_cast<float>(1e3 * (end->at - begin->at));
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->captured = new CUgraph_st;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = stream->captured;
  stream->captured = nullptr;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long) {
  *exec = new CUgraphExec_st{*graph};
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  LOCK_FAKE;
  Gpu().now += 1e-5;
  for (const auto& node : exec->nodes) {
    weir::calibrate::RunNode(stream, node);
    stream->busy_until = std::max(stream->busy_until, Gpu().now) +
                         weir::calibrate::Slowed(stream, node.seconds);
  }
  if (Gpu().hangs) {
    stream->busy_until = std::numeric_limits<double>::infinity();
  }
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}

}  // extern "C"
