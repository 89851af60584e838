// SPDX-License-Identifier: Apache-2.0
// Memory of a rank: allocations and their peak. Errors are those of the device
// (rank_device.h).
#ifndef WEIR_CALIBRATE_EXECUTE_RANK_MEMORY_H_
#define WEIR_CALIBRATE_EXECUTE_RANK_MEMORY_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/execute/rank_device.h"
#include "calibrate/execute/rank_stage.h"

namespace weir::calibrate {

class RankMemory {
 public:
  explicit RankMemory(RankDevice* device) : device_(device) {}

  absl::StatusOr<void*> Allocate(int64_t num_elements, ElementFormat format,
                                 const std::string& what);
  absl::StatusOr<void*> AllocateBuffer(const RankStage& stage, int buffer);
  // Returns Internal if the memory is not allocated.
  absl::Status Free(void* memory);
  absl::Status FreeAll();

  // Returns the maximum number of bytes allocated at the same time since
  // ResetPeak().
  double peak_bytes() const { return peak_bytes_; }
  void ResetPeak() { peak_bytes_ = bytes_; }

 private:
  RankDevice* const device_;
  std::map<void*, double> allocated_;  // bytes
  double bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_RANK_MEMORY_H_
