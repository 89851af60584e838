// SPDX-License-Identifier: Apache-2.0
// Several sets of the same buffers, for rotation. Functions return the errors
// of errors.h, and DeadlineExceeded if the GPU does not finish in time.
#ifndef WEIR_CALIBRATE_GPU_BUFFER_SETS_H_
#define WEIR_CALIBRATE_GPU_BUFFER_SETS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/gpu/bench_device.h"

namespace weir::calibrate {

class BufferSets {
 public:
  // Only the pieces have memory; an address in a table is where the whole
  // buffer would begin. `touched_bytes`, read and written by one launch,
  // determines the number of sets (host/rotation.h). All sets are filled.
  // Returns ResourceExhausted if not even one fits.
  static absl::StatusOr<BufferSets> Create(const BenchDevice& device,
                                           const StageProgram& program,
                                           const std::vector<Piece>& pieces,
                                           int64_t touched_bytes, bool is_pass);

  // Restores the initial data, which runs since then have added to or
  // overwritten.
  absl::Status Refill(const BenchDevice& device, const StageProgram& program,
                      int set) const;

  int size() const { return static_cast<int>(tables_.size()); }
  const std::vector<BufferTable>& tables() const { return tables_; }

 private:
  DeviceMemory memory_;
  std::vector<Piece> pieces_;
  std::vector<PieceFill> fills_;
  std::vector<BufferTable> tables_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_BUFFER_SETS_H_
