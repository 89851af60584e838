// SPDX-License-Identifier: Apache-2.0
// The workloads of the bench, prepared.
#ifndef WEIR_CALIBRATE_GPU_WORKLOADS_H_
#define WEIR_CALIBRATE_GPU_WORKLOADS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "calibrate/gpu/bench_device.h"
#include "calibrate/measure/bench.h"

namespace weir {

// An operation or a pass; with kOpBesideCopies and kOpBesideCollectives the
// operation alone (beside.h adds what runs beside it).
absl::StatusOr<std::unique_ptr<PreparedWorkload>> PrepareStageWorkload(
    const BenchDevice* device, const Workload& workload);

// Empty kernels, copies, messages to self.
absl::StatusOr<std::unique_ptr<PreparedWorkload>> PreparePlainWorkload(
    BenchDevice* device, const Workload& workload);

// A pass on the first part of a card while `active_partitions` - 1 others run
// the passes of a microbatch of the same stage, on data of their own.
// InvalidArgument: there are not so many parts.
absl::StatusOr<std::unique_ptr<PreparedWorkload>> PrepareLoadedWorkload(
    const BenchDevice* device, const Workload& workload);

// An operation while copies or messages keep a second stream busy.
absl::StatusOr<std::unique_ptr<PreparedWorkload>> PrepareBesideWorkload(
    BenchDevice* device, const Workload& workload);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_WORKLOADS_H_
