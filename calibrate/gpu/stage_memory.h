// SPDX-License-Identifier: Apache-2.0
// Measures the memory that a stage takes from its own pool, from its first
// forward to its update. Returns the errors of errors.h, and DeadlineExceeded
// if the GPU does not finish in time.
#ifndef WEIR_CALIBRATE_GPU_STAGE_MEMORY_H_
#define WEIR_CALIBRATE_GPU_STAGE_MEMORY_H_

#include "absl/status/statusor.h"
#include "calibrate/gpu/bench_device.h"
#include "calibrate/profile/measured_costs.pb.h"

namespace weir::calibrate {

// Sets predicted, rounded and measured bytes and the number of microbatches.
absl::StatusOr<MeasuredMemory> MeasureStage(const BenchDevice& device,
                                            const StageProgram& program,
                                            int num_microbatches);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_STAGE_MEMORY_H_
