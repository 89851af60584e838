// SPDX-License-Identifier: Apache-2.0
// The CPU back end: stages run by calibrate/reference in double precision.
#ifndef WEIR_CALIBRATE_REPLAY_HOST_DEVICE_H_
#define WEIR_CALIBRATE_REPLAY_HOST_DEVICE_H_

#include <functional>
#include <memory>

#include "calibrate/replay/rank_device.h"

namespace weir {

struct HostDeviceOptions {
  bool concurrent = true;  // threads as ranks; else serial
  // Seconds of a pass or update in the place of the clock's, so that times are
  // known: tests. Serial only.
  std::function<double(int stage, StagePass pass)> pretended_seconds = {};
};

// The plan must outlive it. A message takes its link's time: the receiver's
// work waits for it.
std::unique_ptr<ReplayDevice> MakeHostDevice(const ReplayPlan& plan,
                                             const HostDeviceOptions& options);

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_HOST_DEVICE_H_
