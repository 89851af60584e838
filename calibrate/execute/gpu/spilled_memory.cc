// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/gpu/spilled_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {
namespace {

absl::Status NotThere() {
  return absl::InternalError("memory is used that was not allocated");
}

}  // namespace

SpilledMemory::~SpilledMemory() {
  if (DeviceIsHung()) return;
  for (auto& [name, piece] : pieces_) {
    if (piece.memory != nullptr) {
      pool_->Free(piece.memory, stream_).IgnoreError();
    }
  }
}

absl::StatusOr<void*> SpilledMemory::Allocate(int64_t num_bytes,
                                              absl::string_view what_for) {
  Piece piece;
  piece.num_bytes = num_bytes;
  ASSIGN_OR_RETURN(piece.memory, pool_->Allocate(num_bytes, stream_, what_for));
  const uintptr_t name = next_;
  constexpr uintptr_t kStep = 256;  // with a gap between the pieces
  next_ += (static_cast<uintptr_t>(num_bytes) / kStep + 2) * kStep;
  pieces_.emplace(name, std::move(piece));
  num_bytes_ += num_bytes;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never dereferenced
  return reinterpret_cast<void*>(name);
}

absl::Status SpilledMemory::Free(void* name) {
  const auto found = pieces_.find(reinterpret_cast<uintptr_t>(name));
  if (found == pieces_.end()) return NotThere();
  Piece piece = std::move(found->second);
  pieces_.erase(found);
  num_bytes_ -= piece.num_bytes;
  if (piece.memory != nullptr) return pool_->Free(piece.memory, stream_);
  host_->Free(std::move(piece.host));
  return absl::OkStatus();
}

absl::StatusOr<void*> SpilledMemory::Locate(const void* name) const {
  const auto at = reinterpret_cast<uintptr_t>(name);
  auto found = pieces_.upper_bound(at);
  if (found == pieces_.begin()) return NotThere();
  --found;
  const Piece& piece = found->second;
  const uintptr_t offset = at - found->first;
  if (offset > 0 && offset >= static_cast<uintptr_t>(piece.num_bytes)) {
    return NotThere();
  }
  void* base = piece.memory != nullptr ? piece.memory : piece.host.memory.get();
  return static_cast<void*>(static_cast<char*>(base) + offset);
}

absl::Status SpilledMemory::Spill() {
  is_spilled_ = true;
  for (auto& [name, piece] : pieces_) {
    if (piece.memory == nullptr) continue;
    ASSIGN_OR_RETURN(
        piece.host,
        host_->Allocate(std::max<int64_t>(piece.num_bytes, 1), "an idle rank"));
    RETURN_IF_ERROR(CudaStatus(
        cudaMemcpyAsync(piece.host.memory.get(), piece.memory, piece.num_bytes,
                        cudaMemcpyDeviceToHost, stream_),
        "copying a rank to the host"));
    RETURN_IF_ERROR(pool_->Free(piece.memory, stream_));
    piece.memory = nullptr;
  }
  RETURN_IF_ERROR(
      WaitFor(stream_, timeout_seconds_, "copying a rank to the host"));
  return pool_->Trim();
}

absl::Status SpilledMemory::Restore() {
  std::vector<PinnedBlocks::Block> read;
  absl::Status status;
  for (auto& [name, piece] : pieces_) {
    if (piece.memory != nullptr) continue;
    absl::StatusOr<void*> memory =
        pool_->Allocate(piece.num_bytes, stream_, "a resumed rank");
    status = memory.status();
    if (!status.ok()) break;
    status = CudaStatus(
        cudaMemcpyAsync(*memory, piece.host.memory.get(), piece.num_bytes,
                        cudaMemcpyHostToDevice, stream_),
        "copying a rank back");
    if (!status.ok()) break;
    piece.memory = *memory;
    read.push_back(std::move(piece.host));
  }
  RETURN_IF_ERROR(WaitFor(stream_, timeout_seconds_, "copying a rank back"));
  for (PinnedBlocks::Block& block : read) host_->Free(std::move(block));
  if (status.ok()) is_spilled_ = false;
  return status;
}

}  // namespace weir::calibrate
