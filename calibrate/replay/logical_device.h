// SPDX-License-Identifier: Apache-2.0
// A device whose ranks work one after the other, with the clocks of ranks that
// do not: each rank has its own, which advances by what its work took alone;
// messages take the time of their link, one of a pair of ranks after the other,
// as they were sent; channels to the host theirs.
#ifndef WEIR_CALIBRATE_REPLAY_LOGICAL_DEVICE_H_
#define WEIR_CALIBRATE_REPLAY_LOGICAL_DEVICE_H_

#include <memory>

#include "calibrate/replay/rank_device.h"

namespace weir {

// Both must outlive it. Seconds of moments are known once all ranks have
// finished; one thread for all of it.
std::unique_ptr<ReplayDevice> MakeLogicalDevice(const ReplayPlan& plan,
                                                ReplayDevice* device);

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_LOGICAL_DEVICE_H_
