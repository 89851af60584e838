// SPDX-License-Identifier: Apache-2.0
// A device that runs ranks one at a time but keeps the clocks of concurrent
// ranks. Each rank has its own clock, which advances by the uncontended time of
// its work. Messages take the time of their link, in the order sent between
// each pair of ranks; host copies take their own time, in order per channel.
#ifndef WEIR_CALIBRATE_EXECUTE_LOGICAL_DEVICE_H_
#define WEIR_CALIBRATE_EXECUTE_LOGICAL_DEVICE_H_

#include <memory>

#include "calibrate/execute/rank_device.h"

namespace weir::calibrate {

// Requires: both arguments outlive the device; one thread makes all calls.
// The times of events are known after all ranks have finished.
std::unique_ptr<ExecutionDevice> MakeLogicalDevice(const ExecutionPlan& plan,
                                                   ExecutionDevice* device);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_LOGICAL_DEVICE_H_
