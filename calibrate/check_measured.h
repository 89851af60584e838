// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_CALIBRATE_CHECK_MEASURED_H_
#define WEIR_CALIBRATE_CHECK_MEASURED_H_

#include "base/problems.h"
#include "calibrate/device_profile.pb.h"

namespace weir {

// What is wrong with what a profile keeps of its own measurements: kernels,
// stages, memory, links, the figures of overlap and of reserved memory.
void CheckMeasured(const DeviceProfile& profile, Problems* problems);

}  // namespace weir

#endif  // WEIR_CALIBRATE_CHECK_MEASURED_H_
