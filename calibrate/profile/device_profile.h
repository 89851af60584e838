// SPDX-License-Identifier: Apache-2.0
// Loads device profiles.
#ifndef WEIR_CALIBRATE_PROFILE_DEVICE_PROFILE_H_
#define WEIR_CALIBRATE_PROFILE_DEVICE_PROFILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

// Loads and validates a preset ("v100-sxm2-16gb") or a textproto file, with the
// fields that it inherits from its base. Returns NotFound if there is neither,
// and InvalidArgument with all problems of the profile.
absl::StatusOr<DeviceProfile> LoadDeviceProfile(
    const std::string& name_or_path);

// Reports all problems of a profile at once. Returns InvalidArgument with them.
absl::Status ValidateDeviceProfile(absl::string_view label,
                                   const DeviceProfile& profile);

// Returns the rate of a number format, or null if the profile has none.
const MatrixRate* FindRate(const DeviceProfile& profile,
                           absl::string_view format);

// Returns the peak FLOP per second in a number format, or InvalidArgument if
// the profile does not have the format.
absl::StatusOr<double> PeakFlops(const DeviceProfile& profile,
                                 absl::string_view format);

// Memory taken before the first tensor: the sum of its parts if the profile has
// them, otherwise reserved_bytes.
bool HasReservedParts(const DeviceProfile& profile);
double ReservedBytes(const DeviceProfile& profile);

// Returns true if all parameters of communicator memory other than nvls_bytes
// were measured.
bool HasMeasuredCommunicators(const DeviceProfile& profile);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PROFILE_DEVICE_PROFILE_H_
