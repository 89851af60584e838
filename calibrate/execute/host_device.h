// SPDX-License-Identifier: Apache-2.0
// The CPU back end: calibrate/execute/reference runs stages in double
// precision.
#ifndef WEIR_CALIBRATE_EXECUTE_HOST_DEVICE_H_
#define WEIR_CALIBRATE_EXECUTE_HOST_DEVICE_H_

#include <functional>
#include <memory>

#include "calibrate/execute/rank_device.h"

namespace weir::calibrate {

struct HostDeviceOptions {
  bool concurrent = true;  // ranks are threads; otherwise serial
  // Seconds of a pass or update that replace the clock, so that tests have
  // known times. Serial only.
  std::function<double(int stage, ProgramPass pass)> fake_seconds = {};
};

// Creates the device. Requires: the plan outlives it. A message takes the time
// of its link, and the receiver's work waits for it.
std::unique_ptr<ExecutionDevice> MakeHostDevice(
    const ExecutionPlan& plan, const HostDeviceOptions& options);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_HOST_DEVICE_H_
