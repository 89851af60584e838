// SPDX-License-Identifier: Apache-2.0
// Inheritance between device profiles and between runtimes, see `base` in
// device_profile.proto and runtime.proto.
#ifndef WEIR_CALIBRATE_PROFILE_PROFILE_BASE_H_
#define WEIR_CALIBRATE_PROFILE_PROFILE_BASE_H_

#include "absl/status/statusor.h"
#include "base/assets.h"
#include "calibrate/profile/device_profile.pb.h"
#include "calibrate/profile/runtime.pb.h"

namespace weir::calibrate {

// Parses a profile and merges it with its base, the base of that, and so on.
// Returns InvalidArgument with the file whose base is missing, leads back to
// itself or is too deep. The result has no `base` and is not validated.
absl::StatusOr<DeviceProfile> ResolveBase(const Asset& asset);

// Does the same for a runtime. A switch that the base turns on cannot be turned
// off by a variant, because proto3 does not store false.
absl::StatusOr<Runtime> ResolveRuntimeBase(const Asset& asset);

// Returns `base` with the fields that `variant` sets.
DeviceProfile Inherit(DeviceProfile base, const DeviceProfile& variant);
Runtime Inherit(Runtime base, const Runtime& variant);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PROFILE_PROFILE_BASE_H_
