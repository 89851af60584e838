// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/gpu/pinned_memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {

absl::StatusOr<PinnedMemory> AllocatePinned(int64_t num_bytes,
                                            absl::string_view what_for) {
  PinnedMemory memory;
  const cudaError_t code =
      cudaHostAlloc(memory.receive(), num_bytes, cudaHostAllocDefault);
  if (code != cudaSuccess) cudaGetLastError();  // clears the error of this call
  RETURN_IF_ERROR(
      CudaStatus(code, absl::StrCat("page-locking ", num_bytes,
                                    " bytes of the host for ", what_for)));
  return memory;
}

absl::StatusOr<PinnedBlocks::Block> PinnedBlocks::Allocate(
    int64_t num_bytes, absl::string_view what_for) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = free_.find(num_bytes);
    if (found != free_.end()) {
      Block block = std::move(found->second);
      free_.erase(found);
      return block;
    }
  }
  Block block;
  ASSIGN_OR_RETURN(block.memory, AllocatePinned(num_bytes, what_for));
  block.num_bytes = num_bytes;
  return block;
}

void PinnedBlocks::Free(Block block) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t num_bytes = block.num_bytes;
  free_.emplace(num_bytes, std::move(block));
}

absl::StatusOr<UploadRing> UploadRing::Create(int64_t num_bytes) {
  UploadRing ring;
  ASSIGN_OR_RETURN(ring.memory_, AllocatePinned(num_bytes, "uploads"));
  ring.num_bytes_ = num_bytes;
  return ring;
}

absl::Status UploadRing::Upload(int64_t num_bytes, void* to,
                                cudaStream_t stream,
                                const std::shared_ptr<EventPool>& events,
                                double timeout_seconds,
                                absl::FunctionRef<void(uint8_t* bytes)> fill) {
  if (next_ + num_bytes > num_bytes_) next_ = 0;
  while (!pieces_.empty() && pieces_.front().copied->HasPassed()) {
    pieces_.pop_front();
  }
  const int64_t begin = next_, end = begin + num_bytes;
  // At the end of the ring the oldest piece may not be the one that overlaps.
  const auto in_the_way = [&](const Piece& piece) {
    return piece.begin < end && begin < piece.end;
  };
  while (std::any_of(pieces_.begin(), pieces_.end(), in_the_way)) {
    RETURN_IF_ERROR(WaitFor(pieces_.front().copied->get(), timeout_seconds,
                            "an upload to the GPU"));
    pieces_.pop_front();
  }
  fill(data() + begin);
  RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(to, data() + begin, num_bytes,
                                             cudaMemcpyHostToDevice, stream),
                             "copying to the GPU"));
  ASSIGN_OR_RETURN(auto copied, RecordedEvent::Record(events, stream));
  pieces_.push_back({begin, end, std::move(copied)});
  next_ = (end + 255) / 256 * 256;
  return absl::OkStatus();
}

}  // namespace weir::calibrate
