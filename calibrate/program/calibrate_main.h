// SPDX-License-Identifier: Apache-2.0
// The program weir-calibrate, but for the GPU: machine.h brings CUDA and NCCL,
// tests bring a pretended device.
#ifndef WEIR_CALIBRATE_PROGRAM_CALIBRATE_MAIN_H_
#define WEIR_CALIBRATE_PROGRAM_CALIBRATE_MAIN_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/measure/bench.h"
#include "calibrate/network/command.h"
#include "calibrate/replay/rank_device.h"

namespace weir {

struct BenchRequest {
  int device = 0;
  int num_candidates = 8;        // algorithms tried for a product
  double timeout_seconds = 120;  // of any wait for the GPU
  // Measures on one of so many equal parts of the card; 0: on all of it.
  int num_partitions = 0;
};

// Something that calibrating needs, or is better with.
struct MachineFinding {
  std::string name;    // "driver"
  std::string found;   // "580.95.05"; empty: missing
  std::string advice;  // what to do then
  bool required = true;
};

struct ReplayDeviceRequest {
  int device = 0;
  int num_partitions = 0;  // 0: serial, each rank has the whole card
};

struct Factories {
  // FailedPrecondition or Unavailable, one line: why there is none.
  std::function<absl::StatusOr<std::unique_ptr<Bench>>(const BenchRequest&)>
      open_bench;
  TransportFactory make_transport;
  // FailedPrecondition or Unavailable, as open_bench; InvalidArgument for a
  // plan that no GPU runs. The plan must outlive the device; its timeout is
  // that of every wait.
  std::function<absl::StatusOr<std::unique_ptr<ReplayDevice>>(
      const ReplayPlan& plan, const ReplayDeviceRequest& request)>
      open_replay;
  std::function<std::vector<MachineFinding>(int device)> find;
};

// All of the program; returns its exit code (base/exit_code.h).
int CalibrateMain(int argc, const char* const* argv,
                  const Factories& factories);

}  // namespace weir

#endif  // WEIR_CALIBRATE_PROGRAM_CALIBRATE_MAIN_H_
