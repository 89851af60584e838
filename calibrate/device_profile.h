// SPDX-License-Identifier: Apache-2.0
// Loads device profiles and predicts kernel times from them.
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

// Loads and validates a preset ("v100-sxm2-16gb") or a textproto file.
absl::StatusOr<DeviceProfile> LoadDeviceProfile(
    const std::string& name_or_path);

absl::Status ValidateDeviceProfile(absl::string_view label,
                                   const DeviceProfile& profile);

// Returns the peak FLOP per second in a number format; InvalidArgument if the
// profile does not have the format.
absl::StatusOr<double> PeakFlops(const DeviceProfile& profile,
                                 absl::string_view format);

// Returns the GEMM shape for product_seconds.h. Requires: the kernel is a GEMM.
ProductShape ShapeOf(const Kernel& kernel);

// Memory taken before the first tensor: the sum of its parts if the profile has
// them, otherwise reserved_bytes.
bool HasReservedParts(const DeviceProfile& profile);
double ReservedBytes(const DeviceProfile& profile);

// Returns true if all parameters of communicator memory other than nvls_bytes
// were measured.
bool HasMeasuredCommunicators(const DeviceProfile& profile);

// Returns the seconds of one kernel in a training step as predicted from the
// model parameters: GEMMs by product_seconds.h, attention by its FLOP and
// efficiency, others as a fixed cost plus the larger of arithmetic and memory
// traffic. Measured times are in kernel_prices.h. Requires: peak_flops came
// from PeakFlops; the profile is valid.
double KernelSeconds(const DeviceProfile& profile, double peak_flops,
                     const Kernel& kernel);

// The same for kernels that run one after the other.
double KernelSeconds(const DeviceProfile& profile, double peak_flops,
                     const std::vector<Kernel>& kernels);

}  // namespace weir

#endif  // WEIR_CALIBRATE_DEVICE_PROFILE_H_
