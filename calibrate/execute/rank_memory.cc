// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/rank_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weir::calibrate {

absl::StatusOr<void*> RankMemory::Allocate(int64_t num_elements,
                                           ElementFormat format,
                                           const std::string& what) {
  ASSIGN_OR_RETURN(void* memory,
                   device_->AllocateMemory(num_elements, format, what));
  const auto bytes = static_cast<double>(num_elements * BytesOf(format));
  allocated_[memory] = bytes;
  bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, bytes_);
  return memory;
}

absl::StatusOr<void*> RankMemory::AllocateBuffer(const RankStage& stage,
                                                 int buffer) {
  const StageBuffer& of = stage.layout.buffer(buffer);
  return Allocate(of.num_elements, of.format,
                  absl::StrCat(of.name, " of stage ", stage.stage));
}

absl::Status RankMemory::Free(void* memory) {
  const auto found = allocated_.find(memory);
  if (found == allocated_.end()) {
    return absl::InternalError("memory is freed twice");
  }
  bytes_ -= found->second;
  allocated_.erase(found);
  return device_->FreeMemory(memory);
}

absl::Status RankMemory::FreeAll() {
  while (!allocated_.empty()) RETURN_IF_ERROR(Free(allocated_.begin()->first));
  return absl::OkStatus();
}

}  // namespace weir::calibrate
