// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/gpu/execution_device.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/execute/gpu/partitioned_execution.h"
#include "calibrate/execute/gpu/serial_execution.h"

namespace weir::calibrate {
namespace {

absl::Status CheckFormat(const ExecutionPlan& plan, ElementFormat half_format) {
  for (const auto& program : plan.programs) {
    for (const StageBuffer& buffer : program->buffers) {
      if (buffer.buffer_class != BufferClass::kWeights ||
          buffer.format == half_format) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "the plan's stages are in ", Name(buffer.format),
          ", expected the format of this GPU, ", Name(half_format)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void RequestReplaySettings() {
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  RequestManyQueues();
}

absl::StatusOr<std::unique_ptr<ExecutionDevice>> OpenCudaExecutionDevice(
    const ExecutionPlan& plan, const CudaExecutionOptions& options) {
  RequestReplaySettings();
  CudaBenchOptions bench_options;
  bench_options.device = options.device;
  bench_options.workspace_bytes = options.workspace_bytes;
  bench_options.num_candidates = options.num_candidates;
  bench_options.timeout_seconds = plan.timeout_seconds;
  bench_options.nvml = options.nvml;
  ASSIGN_OR_RETURN(std::unique_ptr<BenchDevice> bench,
                   OpenBenchDevice(bench_options));
  RETURN_IF_ERROR(CheckFormat(plan, bench->facts.half_format));
  if (options.num_partitions == 0) {
    return SerialExecution::Open(plan, std::move(bench), options);
  }
  return PartitionedExecution::Open(plan, std::move(bench), options);
}

}  // namespace weir::calibrate
