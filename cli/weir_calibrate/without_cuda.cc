// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "cli/weir_calibrate/machine.h"

namespace weir::cli {
namespace {

// WEIR_WITHOUT_CUDA is the reason found by CMake.
absl::Status Missing() {
  return absl::UnavailableError("built without CUDA: " WEIR_WITHOUT_CUDA);
}

}  // namespace

Factories MachineFactories() {
  Factories factories;
  factories.open_bench = [](const BenchRequest&)
      -> absl::StatusOr<std::unique_ptr<calibrate::Bench>> {
    return Missing();
  };
  factories.make_transport = [](const calibrate::TransportRequest&)
      -> absl::StatusOr<std::unique_ptr<calibrate::Transport>> {
    return Missing();
  };
  factories.open_replay = [](const calibrate::ExecutionPlan&,
                             const ReplayDeviceRequest&)
      -> absl::StatusOr<std::unique_ptr<calibrate::ExecutionDevice>> {
    return Missing();
  };
  factories.find = [](int) -> std::vector<calibrate::MachineFinding> {
    return {{"CUDA", "", std::string(Missing().message()), true},
            {"CPU", "replay --cpu", "", false}};
  };
  factories.identify = [](int) -> absl::StatusOr<Provenance> {
    return Missing();
  };
  return factories;
}

void ExitIfDeviceHangs(int) {}

}  // namespace weir::cli
