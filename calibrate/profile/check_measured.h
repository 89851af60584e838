// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_CALIBRATE_PROFILE_CHECK_MEASURED_H_
#define WEIR_CALIBRATE_PROFILE_CHECK_MEASURED_H_

#include "base/problems.h"
#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

// Reports all problems with a profile's measurements: kernels, stages, memory,
// links, overlap slowdowns and the parts of the reserved memory.
void CheckMeasured(const DeviceProfile& profile, Problems* problems);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PROFILE_CHECK_MEASURED_H_
