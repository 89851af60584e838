// SPDX-License-Identifier: Apache-2.0
// A rank's memory on a card that all ranks have in turn: it may be brought to
// the host while the rank is not at work.
#ifndef WEIR_CALIBRATE_GPU_SPILLED_MEMORY_H_
#define WEIR_CALIBRATE_GPU_SPILLED_MEMORY_H_

#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/gpu/memory_pool.h"
#include "calibrate/gpu/pinned_memory.h"

namespace weir {

// Takes and gives back in the order of one stream. What it hands out are names
// of memory that stay the same wherever it is: no addresses of anything, but
// bytes can be added to them.
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

  // REQUIRES: not spilled. ResourceExhausted: the card is full.
  absl::StatusOr<void*> Take(int64_t num_bytes, absl::string_view what_for);
  absl::Status GiveBack(void* name);
  // On the card, or in pinned memory where it is spilled.
  absl::StatusOr<void*> Locate(const void* name) const;

  // Everything to the host; waits for it, and for all else on the stream.
  absl::Status Spill();
  // And back. ResourceExhausted: does not fit yet, what came back stays; call
  // it again.
  absl::Status Restore();
  bool is_spilled() const { return is_spilled_; }
  int64_t num_bytes() const { return num_bytes_; }

 private:
  struct Piece {
    int64_t num_bytes = 0;
    void* memory = nullptr;    // null: on the host
    PinnedBlocks::Block host;  // of a piece that is there
  };

  MemoryPool* pool_;
  PinnedBlocks* host_;
  cudaStream_t stream_;
  double timeout_seconds_;
  std::map<uintptr_t, Piece> pieces_;  // by name
  // Names are no addresses that a processor has.
  uintptr_t next_ = uintptr_t{0x5000} << 48;
  bool is_spilled_ = false;
  int64_t num_bytes_ = 0;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_SPILLED_MEMORY_H_
