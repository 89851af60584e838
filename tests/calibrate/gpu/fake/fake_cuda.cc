// SPDX-License-Identifier: Apache-2.0
// The device and its memory.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/calibrate/gpu/fake/fake_gpu.h"

struct CUmemPoolHandle_st {
  uint64_t used = 0, used_high = 0, max_bytes = 0;
};

using weir::calibrate::Enqueue;
using weir::calibrate::Gpu;
using weir::calibrate::LastError;
using weir::fake::Accesses;
using weir::fake::IsThere;
using weir::fake::Reads;
using weir::fake::Writes;

namespace {

constexpr int64_t kContextBytes = 400 << 20;
constexpr uint64_t kPoolStep = 512, kReserveStep = 2 << 20;
bool has_context = false;

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

void Free(void* memory, cudaStream_t stream = nullptr) {
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
cudaError_t cudaDeviceGetPCIBusId(char* bus_id, int size, int) {
  std::snprintf(bus_id, size, "0000:3B:00.0");
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return std::exchange(LastError(), cudaSuccess);
}
const char* cudaGetErrorName(cudaError_t code) {
  return code == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
                                           : "cudaErrorFake";
}
const char* cudaGetErrorString(cudaError_t) { return "fake"; }

cudaError_t cudaFree(void* memory) {
  if (!has_context) Gpu().used_bytes += kContextBytes;
  has_context = true;
  if (memory != nullptr) Free(memory);
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
      [=] { weir::calibrate::CopyBytes(to, from, bytes, stream); },
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
  weir::calibrate::AddPinned(*memory, bytes);
  weir::fake::NoteTaken(*memory, static_cast<int64_t>(bytes), 0, nullptr);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  LOCK_FAKE;
  weir::calibrate::RemovePinned(memory);
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
    return LastError() = cudaErrorMemoryAllocation;
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
  if (found == of_pools.end()) return LastError() = cudaErrorInvalidValue;
  const auto [pool, bytes] = found->second;
  pool->used -= bytes;
  of_pools.erase(memory);
  Free(memory, stream);
  return cudaSuccess;
}

}  // extern "C"
