// SPDX-License-Identifier: Apache-2.0
// Page-locked host memory, required for copies that overlap with other work.
// Errors are those of calibrate/gpu/errors.h.
#ifndef WEIR_CALIBRATE_EXECUTE_GPU_PINNED_MEMORY_H_
#define WEIR_CALIBRATE_EXECUTE_GPU_PINNED_MEMORY_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/execute/gpu/event_pool.h"
#include "calibrate/gpu/handles.h"

namespace weir::calibrate {

using PinnedMemory = Owned<void*, cudaFreeHost>;
// Returns ResourceExhausted, with `what_for`, if there is not enough memory.
// Slow, and other work of the device may wait for it.
absl::StatusOr<PinnedMemory> AllocatePinned(int64_t num_bytes,
                                            absl::string_view what_for);

// A cache of blocks by size. Thread-safe.
class PinnedBlocks {
 public:
  struct Block {
    PinnedMemory memory;
    int64_t num_bytes = 0;
  };
  absl::StatusOr<Block> Allocate(int64_t num_bytes, absl::string_view what_for);
  void Free(Block block);

 private:
  std::mutex mutex_;
  std::multimap<int64_t, Block> free_;
};

// Uploads from the host in stream order. Waits only if the ring is full of
// uploads in flight.
class UploadRing {
 public:
  static absl::StatusOr<UploadRing> Create(int64_t num_bytes);

  // Calls `fill` to write num_bytes, which are then copied `to` device memory
  // in stream order. Requires: at most num_bytes(). Returns DeadlineExceeded if
  // the stream does not proceed.
  absl::Status Upload(int64_t num_bytes, void* to, cudaStream_t stream,
                      const std::shared_ptr<EventPool>& events,
                      double timeout_seconds,
                      absl::FunctionRef<void(uint8_t* bytes)> fill);
  int64_t num_bytes() const { return num_bytes_; }
  uint8_t* data() const { return static_cast<uint8_t*>(memory_.get()); }

 private:
  struct Piece {
    int64_t begin, end;
    std::unique_ptr<RecordedEvent> copied;
  };
  UploadRing() = default;

  PinnedMemory memory_;
  int64_t num_bytes_ = 0, next_ = 0;
  std::deque<Piece> pieces_;  // in flight, oldest first
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_GPU_PINNED_MEMORY_H_
