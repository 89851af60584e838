// SPDX-License-Identifier: Apache-2.0
// The program weir-calibrate without GPU access: machine.h provides CUDA and
// NCCL, tests provide a simulated device.
#ifndef WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_MAIN_H_
#define WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_MAIN_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/execute/rank_device.h"
#include "calibrate/fabric/command.h"
#include "calibrate/measure/bench.h"
#include "calibrate/measure/machine_finding.h"
#include "calibrate/profile/provenance.pb.h"

namespace weir::cli {

struct BenchRequest {
  int device = 0;
  int num_candidates = 8;        // algorithms tried for a GEMM
  double timeout_seconds = 120;  // limit of any wait for the GPU
  // Measures on one of this many equal partitions of the GPU; 0: on the whole
  // GPU.
  int num_partitions = 0;
};

struct ReplayDeviceRequest {
  int device = 0;
  int num_partitions = 0;  // 0: serial, each rank has the whole GPU
};

struct Factories {
  // Returns FailedPrecondition or Unavailable, with the reason in one line.
  std::function<absl::StatusOr<std::unique_ptr<calibrate::Bench>>(
      const BenchRequest&)>
      open_bench;
  calibrate::TransportFactory make_transport;
  // Returns FailedPrecondition or Unavailable, as open_bench does;
  // InvalidArgument for a plan that a GPU cannot run. The plan must outlive the
  // device; its timeout applies to every wait.
  std::function<absl::StatusOr<std::unique_ptr<calibrate::ExecutionDevice>>(
      const calibrate::ExecutionPlan& plan, const ReplayDeviceRequest& request)>
      open_replay;
  std::function<std::vector<calibrate::MachineFinding>(int device)> find;
  // Returns name, multiprocessors and memory of a GPU without a context on it.
  // Returns FailedPrecondition or Unavailable, as open_bench does.
  std::function<absl::StatusOr<Provenance>(int device)> identify;
};

// Runs the program; returns its exit code (base/exit_code.h).
int CalibrateMain(int argc, const char* const* argv,
                  const Factories& factories);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_MAIN_H_
