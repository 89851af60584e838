// SPDX-License-Identifier: Apache-2.0
// A stage's own memory pool, as emulated capacity and as a meter.
#ifndef WEIR_CALIBRATE_GPU_MEMORY_POOL_H_
#define WEIR_CALIBRATE_GPU_MEMORY_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/gpu/handles.h"

namespace weir {

// Highest values since the last reset.
struct PoolMarks {
  int64_t used_bytes = 0;      // of what was taken, rounded by the pool
  int64_t reserved_bytes = 0;  // of what the pool took from the device
};

class MemoryPool {
 public:
  // Refuses more than max_bytes (rounded up by the driver); 0: the device's.
  static absl::StatusOr<std::unique_ptr<MemoryPool>> Create(int device,
                                                            int64_t max_bytes);

  // In the order of the stream. ResourceExhausted names `what_for`.
  absl::StatusOr<void*> Take(int64_t num_bytes, cudaStream_t stream,
                             absl::string_view what_for);
  absl::Status GiveBack(void* memory, cudaStream_t stream);

  // Takes so much from the device now, for whatever is taken later: a pool that
  // grows keeps its caller waiting for milliseconds, and others who launch,
  // too. As much as there is where there is less; it stays until Trim.
  absl::Status Prime(int64_t num_bytes, cudaStream_t stream);

  // Gives the device what nothing is in.
  absl::Status Trim();

  absl::StatusOr<PoolMarks> Marks() const;
  absl::Status ResetMarks();
  // By how much one byte raises the used mark: sizes are rounded up to it.
  absl::StatusOr<int64_t> MeasureGranularity(cudaStream_t stream);

 private:
  MemoryPool() = default;
  Owned<cudaMemPool_t, cudaMemPoolDestroy> pool_;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_MEMORY_POOL_H_
