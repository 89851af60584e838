// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "tests/calibrate/gpu/pretend/pretend.h"

struct CUevent_st {
  double at = 0;
};
struct CUmemPoolHandle_st {
  uint64_t used = 0, used_high = 0;
};

namespace weir {

Pretended& Gpu() {
  static auto& gpu = *new Pretended;
  return gpu;
}

void Enqueue(cudaStream_t stream, double seconds, std::function<void()> work) {
  Pretended& gpu = Gpu();
  gpu.now += 1e-6;
  if (stream->captured != nullptr) {
    stream->captured->nodes.push_back({seconds, std::move(work)});
    return;
  }
  work();
  if (gpu.hangs) seconds = std::numeric_limits<double>::infinity();
  seconds = Slowed(stream, seconds);
  stream->busy_until = std::max(stream->busy_until, gpu.now) + seconds;
}

}  // namespace weir

using weir::Enqueue;
using weir::Gpu;

namespace {

constexpr int64_t kContextBytes = 400 << 20;
constexpr uint64_t kPoolStep = 512, kReserveStep = 2 << 20;
bool has_context = false;
cudaError_t last_error = cudaSuccess;

cudaError_t Poll(double until) {
  Gpu().now += 1e-4;
  if (until <= Gpu().now) return cudaSuccess;
  return last_error = cudaErrorNotReady;  // as CUDA's queries leave it behind
}

cudaError_t Take(void** memory, size_t bytes) {
  const auto rounded = static_cast<int64_t>((bytes + 255) / 256 * 256);
  if (Gpu().used_bytes + rounded > Gpu().total_bytes) {
    return cudaErrorMemoryAllocation;
  }
  *memory = std::aligned_alloc(256, rounded);
  std::memset(*memory, 0xFF, rounded);  // NaN until something is written
  Gpu().used_bytes += rounded;
  Gpu().allocations[*memory] = rounded;
  return cudaSuccess;
}

void GiveBack(void* memory) {
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
  std::strcpy(properties->name, "Pretended GPU");
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
                                           : "cudaErrorPretended";
}
const char* cudaGetErrorString(cudaError_t) { return "pretended"; }

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
  Enqueue(stream, Gpu().copy_seconds + bytes / Gpu().copy_bytes_per_second,
          [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes,
                       cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes,
                            cudaStream_t stream) {
  Enqueue(stream, 0, [=] { std::memset(to, byte, bytes); });
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

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  *pool = new CUmemPoolHandle_st;
  return cudaSuccess;
}
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
                                    cudaMemPool_t pool, cudaStream_t) {
  const cudaError_t code = Take(memory, bytes);
  if (code != cudaSuccess) return code;
  const uint64_t rounded = (bytes + kPoolStep - 1) / kPoolStep * kPoolStep;
  of_pools[*memory] = {pool, rounded};
  pool->used += rounded;
  pool->used_high = std::max(pool->used_high, pool->used);
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t) {
  const auto [pool, bytes] = of_pools.at(memory);
  pool->used -= bytes;
  of_pools.erase(memory);
  GiveBack(memory);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  Gpu().streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  ++Gpu().num_destroyed;
  Gpu().streams.erase(stream);
  if (stream->part != nullptr) --stream->part->num_streams;
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return Poll(stream->busy_until);
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }  // work is done
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->at = std::max(stream->busy_until, Gpu().now);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return Poll(event->at); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin,
                                 cudaEvent_t end) {
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
  Gpu().now += 1e-5;
  for (const auto& node : exec->nodes) {
    node.work();
    stream->busy_until = std::max(stream->busy_until, Gpu().now) +
                         weir::Slowed(stream, node.seconds);
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
