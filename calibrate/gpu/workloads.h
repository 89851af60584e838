// SPDX-License-Identifier: Apache-2.0
// Prepares the workloads of the bench. Functions return the errors of
// Bench::Prepare, and InvalidArgument for a workload that cannot be built.
#ifndef WEIR_CALIBRATE_GPU_WORKLOADS_H_
#define WEIR_CALIBRATE_GPU_WORKLOADS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "calibrate/gpu/bench_device.h"
#include "calibrate/measure/bench.h"

namespace weir::calibrate {

// Prepares an operation or a pass; for kOpWithCopies and kOpWithCollectives
// only the operation (PrepareOverlappedWorkload adds the concurrent load).
absl::StatusOr<std::unique_ptr<PreparedWorkload>> PrepareStageWorkload(
    const BenchDevice* device, const Workload& workload);

// Prepares empty kernels, copies, messages to self.
absl::StatusOr<std::unique_ptr<PreparedWorkload>> PreparePlainWorkload(
    BenchDevice* device, const Workload& workload);

// Prepares a pass on the first GPU partition while `active_partitions` - 1
// other partitions run the passes of a microbatch of the same stage on their
// own data. Returns InvalidArgument if there are not that many partitions.
absl::StatusOr<std::unique_ptr<PreparedWorkload>> PrepareLoadedWorkload(
    const BenchDevice* device, const Workload& workload);

// Prepares an operation while copies or messages keep a second stream busy.
absl::StatusOr<std::unique_ptr<PreparedWorkload>> PrepareOverlappedWorkload(
    BenchDevice* device, const Workload& workload);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_WORKLOADS_H_
