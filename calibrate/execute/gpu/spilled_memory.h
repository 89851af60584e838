// SPDX-License-Identifier: Apache-2.0
// Memory of a rank on a GPU that ranks use in turn: it can be moved to the host
// while the rank is idle. Errors are those of calibrate/gpu/errors.h, also
// Internal for memory that was not allocated, and DeadlineExceeded if the GPU
// does not finish in time.
#ifndef WEIR_CALIBRATE_EXECUTE_GPU_SPILLED_MEMORY_H_
#define WEIR_CALIBRATE_EXECUTE_GPU_SPILLED_MEMORY_H_

#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/execute/gpu/pinned_memory.h"
#include "calibrate/gpu/memory_pool.h"

namespace weir::calibrate {

// Allocates and frees in the order of one stream. Returned pointers are names
// that stay the same wherever the memory is: they are not addresses, but
// offsets in bytes can be added to them.
class SpilledMemory {
 public:
  SpilledMemory(MemoryPool* pool, PinnedBlocks* host, cudaStream_t stream,
                double timeout_seconds)
      : pool_(pool),
        host_(host),
        stream_(stream),
        timeout_seconds_(timeout_seconds) {}
  ~SpilledMemory();
  SpilledMemory(const SpilledMemory&) = delete;
  SpilledMemory& operator=(const SpilledMemory&) = delete;

  // Requires: not spilled. Returns ResourceExhausted if the GPU is full.
  absl::StatusOr<void*> Allocate(int64_t num_bytes, absl::string_view what_for);
  absl::Status Free(void* name);
  // Returns the address on the GPU, or in pinned memory while spilled.
  absl::StatusOr<void*> Locate(const void* name) const;

  // Moves all memory to the host; waits for it and for all other work on the
  // stream.
  absl::Status Spill();
  // Moves the memory back to the GPU. Returns ResourceExhausted if it does not
  // fit yet; the part moved so far stays, and the call can be repeated.
  absl::Status Restore();
  bool is_spilled() const { return is_spilled_; }
  int64_t num_bytes() const { return num_bytes_; }

 private:
  struct Piece {
    int64_t num_bytes = 0;
    void* memory = nullptr;    // null: on the host
    PinnedBlocks::Block host;  // set if the piece is on the host
  };

  MemoryPool* pool_;
  PinnedBlocks* host_;
  cudaStream_t stream_;
  double timeout_seconds_;
  std::map<uintptr_t, Piece> pieces_;  // by name
  // Names are outside of the processors' address range.
  uintptr_t next_ = uintptr_t{0x5000} << 48;
  bool is_spilled_ = false;
  int64_t num_bytes_ = 0;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_GPU_SPILLED_MEMORY_H_
