// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/memory_pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {
namespace {

absl::StatusOr<int64_t> Read(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  uint64_t value = 0;
  RETURN_IF_ERROR(CudaStatus(cudaMemPoolGetAttribute(pool, attribute, &value),
                             "reading the high-water marks of a memory pool"));
  return static_cast<int64_t>(value);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryPool>> MemoryPool::Create(
    int device, int64_t max_bytes) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypeNone;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  properties.maxSize = max_bytes;
  std::unique_ptr<MemoryPool> pool(new MemoryPool);
  RETURN_IF_ERROR(
      CudaStatus(cudaMemPoolCreate(pool->pool_.receive(), &properties),
                 "creating a memory pool"));
  // Reserved memory is kept, so the mark is the maximum that the stage ever
  // needed.
  uint64_t keep = ~uint64_t{0};
  RETURN_IF_ERROR(
      CudaStatus(cudaMemPoolSetAttribute(
                     pool->pool_.get(), cudaMemPoolAttrReleaseThreshold, &keep),
                 "setting up a memory pool"));
  return pool;
}

absl::StatusOr<void*> MemoryPool::Allocate(int64_t num_bytes,
                                           cudaStream_t stream,
                                           absl::string_view what_for) {
  void* memory = nullptr;
  const cudaError_t code = cudaMallocFromPoolAsync(
      &memory, std::max<int64_t>(num_bytes, 1), pool_.get(), stream);
  if (code != cudaSuccess) cudaGetLastError();
  RETURN_IF_ERROR(
      CudaStatus(code, absl::StrCat("allocating ", num_bytes,
                                    " bytes of a memory pool for ", what_for)));
  return memory;
}

absl::Status MemoryPool::Free(void* memory, cudaStream_t stream) {
  return CudaStatus(cudaFreeAsync(memory, stream), "freeing memory of a pool");
}

absl::Status MemoryPool::Prime(int64_t num_bytes, cudaStream_t stream) {
  constexpr int64_t kLeast = 64LL << 20;  // growing by less is fast
  for (; num_bytes >= kLeast; num_bytes -= num_bytes / 8) {
    const absl::StatusOr<void*> memory =
        Allocate(num_bytes, stream, "the memory of a rank");
    if (memory.ok()) return Free(*memory, stream);
    if (!absl::IsResourceExhausted(memory.status())) return memory.status();
  }
  return absl::OkStatus();
}

absl::Status MemoryPool::Trim() {
  return CudaStatus(cudaMemPoolTrimTo(pool_.get(), 0), "emptying a pool");
}

absl::StatusOr<PoolMarks> MemoryPool::Marks() const {
  PoolMarks marks;
  ASSIGN_OR_RETURN(marks.used_bytes,
                   Read(pool_.get(), cudaMemPoolAttrUsedMemHigh));
  ASSIGN_OR_RETURN(marks.reserved_bytes,
                   Read(pool_.get(), cudaMemPoolAttrReservedMemHigh));
  return marks;
}

absl::Status MemoryPool::ResetMarks() {
  for (const cudaMemPoolAttr attribute :
       {cudaMemPoolAttrUsedMemHigh, cudaMemPoolAttrReservedMemHigh}) {
    uint64_t zero = 0;
    RETURN_IF_ERROR(
        CudaStatus(cudaMemPoolSetAttribute(pool_.get(), attribute, &zero),
                   "resetting the high-water marks of a memory pool"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> MemoryPool::MeasureGranularity(cudaStream_t stream) {
  ASSIGN_OR_RETURN(const int64_t before,
                   Read(pool_.get(), cudaMemPoolAttrUsedMemCurrent));
  ASSIGN_OR_RETURN(
      void* memory,
      Allocate(1, stream, "measuring how a memory pool rounds sizes"));
  ASSIGN_OR_RETURN(const int64_t with,
                   Read(pool_.get(), cudaMemPoolAttrUsedMemCurrent));
  RETURN_IF_ERROR(Free(memory, stream));
  return std::max<int64_t>(with - before, 1);
}

}  // namespace weir::calibrate
