// SPDX-License-Identifier: Apache-2.0
// Loading device profiles and pricing kernels with them.
#ifndef WEIR_CALIBRATE_DEVICE_PROFILE_H_
#define WEIR_CALIBRATE_DEVICE_PROFILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/device_profile.pb.h"
#include "calibrate/product_seconds.h"
#include "models/layer_work.h"

namespace weir {

// Loads a preset ("v100-sxm2-16gb") or a textproto file, validated.
absl::StatusOr<DeviceProfile> LoadDeviceProfile(
    const std::string& name_or_path);

absl::Status ValidateDeviceProfile(absl::string_view label,
                                   const DeviceProfile& profile);

// Peak FLOP per second in a number format; InvalidArgument when the profile
// does not have it.
absl::StatusOr<double> PeakFlops(const DeviceProfile& profile,
                                 absl::string_view format);

// A product as product_seconds.h prices it. REQUIRES: the kernel is one.
ProductShape ShapeOf(const Kernel& kernel);

// Taken before the first tensor: the sum of its parts where the profile has
// them, else reserved_bytes.
bool HasReservedParts(const DeviceProfile& profile);
double ReservedBytes(const DeviceProfile& profile);

// Whether all that the profile says of communicators' memory was measured, what
// NVLS takes aside.
bool HasMeasuredCommunicators(const DeviceProfile& profile);

// Seconds that the figures give one kernel in a training step: a product as
// product_seconds.h says, any other a fixed cost plus the larger of arithmetic
// and memory traffic. What was measured itself: kernel_prices.h. REQUIRES:
// peak_flops came from PeakFlops, the profile is valid.
double KernelSeconds(const DeviceProfile& profile, double peak_flops,
                     const Kernel& kernel);

// The same for kernels that run one after the other.
double KernelSeconds(const DeviceProfile& profile, double peak_flops,
                     const std::vector<Kernel>& kernels);

}  // namespace weir

#endif  // WEIR_CALIBRATE_DEVICE_PROFILE_H_
