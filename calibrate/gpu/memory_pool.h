// SPDX-License-Identifier: Apache-2.0
// A stage's own memory pool, for emulated capacity and for measuring. Functions
// return the errors of errors.h.
#ifndef WEIR_CALIBRATE_GPU_MEMORY_POOL_H_
#define WEIR_CALIBRATE_GPU_MEMORY_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/gpu/handles.h"

namespace weir::calibrate {

// Maximum values since the last reset.
struct PoolMarks {
  int64_t used_bytes = 0;      // allocated, rounded by the pool
  int64_t reserved_bytes = 0;  // taken by the pool from the device
};

class MemoryPool {
 public:
  // Creates a pool limited to max_bytes (rounded up by the driver); 0: the
  // device's memory.
  static absl::StatusOr<std::unique_ptr<MemoryPool>> Create(int device,
                                                            int64_t max_bytes);

  // Allocates in stream order. Returns ResourceExhausted, with `what_for`, if
  // the GPU is full.
  absl::StatusOr<void*> Allocate(int64_t num_bytes, cudaStream_t stream,
                                 absl::string_view what_for);
  absl::Status Free(void* memory, cudaStream_t stream);

  // Takes memory from the device now for later allocations, since growing a
  // pool blocks its caller, and other threads that launch, for milliseconds.
  // Takes less if less is available; the memory stays until Trim().
  absl::Status Prime(int64_t num_bytes, cudaStream_t stream);

  // Returns unused memory to the device.
  absl::Status Trim();

  absl::StatusOr<PoolMarks> Marks() const;
  absl::Status ResetMarks();
  // Returns by how much allocating one byte raises the used mark, which is the
  // rounding unit.
  absl::StatusOr<int64_t> MeasureGranularity(cudaStream_t stream);

 private:
  MemoryPool() = default;
  Owned<cudaMemPool_t, cudaMemPoolDestroy> pool_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_MEMORY_POOL_H_
