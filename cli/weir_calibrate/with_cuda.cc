// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>

#include "base/status_macros.h"
#include "calibrate/execute/gpu/execution_device.h"
#include "calibrate/fabric/nccl/nccl_transport.h"
#include "calibrate/gpu/cuda_bench.h"
#include "calibrate/gpu/device.h"
#include "calibrate/gpu/find_cuda.h"
#include "calibrate/gpu/watchdog.h"
#include "cli/weir_calibrate/machine.h"

namespace weir::cli {

Factories MachineFactories() {
  Factories factories;
  factories.open_bench = [](const BenchRequest& request) {
    calibrate::CudaBenchOptions options;
    options.device = request.device;
    options.num_candidates = request.num_candidates;
    options.timeout_seconds = request.timeout_seconds;
    options.num_partitions = request.num_partitions;
    return calibrate::OpenCudaBench(options);
  };
  factories.make_transport = calibrate::MakeNcclTransport;
  factories.open_replay = [](const calibrate::ExecutionPlan& plan,
                             const ReplayDeviceRequest& request) {
    calibrate::CudaExecutionOptions options;
    options.device = request.device;
    options.num_partitions = request.num_partitions;
    return calibrate::OpenCudaExecutionDevice(plan, options);
  };
  factories.find = calibrate::FindCuda;
  factories.identify = [](int device) -> absl::StatusOr<Provenance> {
    // A replay in this process may follow, and the driver reads its settings
    // once.
    calibrate::RequestReplaySettings();
    ASSIGN_OR_RETURN(const calibrate::DeviceFacts facts,
                     calibrate::FindDevice(device));
    return calibrate::ProvenanceOf(facts, nullptr);
  };
  return factories;
}

void ExitIfDeviceHangs(int code) {
  if (!calibrate::DeviceIsHung()) return;
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace weir::cli
