// SPDX-License-Identifier: Apache-2.0
// Creates a profile of a device that weir does not know, from its datasheet and
// the profile of a similar device. Imported measurements then replace the
// assumptions.
#ifndef WEIR_CALIBRATE_FIT_NEW_DEVICE_H_
#define WEIR_CALIBRATE_FIT_NEW_DEVICE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

struct NewDevice {
  std::string name;
  // Dense peaks: number format and FLOP per second.
  std::vector<std::pair<std::string, double>> peaks;
  double memory_bytes_per_second = 0;
  double memory_bytes = 0;
  double num_multiprocessors = 0;
  double link_bytes_per_second = 0;  // of all links, one direction; 0: similar
};

// Parses "bf16=2.25e15,fp32=75e12". Refuses formats that no recipe uses, a
// format given twice, and rates outside of 1e12 to 1e17. Returns
// InvalidArgument for these and for other text.
absl::StatusOr<std::vector<std::pair<std::string, double>>> ParsePeaks(
    absl::string_view text);

// Multiplies the rates of a GEMM model that are absolute, those of the cache,
// by the ratio of two devices' arithmetic peaks.
void ScaleRates(double ratio, GemmModel* gemm);

// Returns `similar` with the figures of the new device. The rates of the cache
// grow with the first peak that both state. Everything that was
// measured on the similar device becomes ASSUMED with a spread of 20 %, and the
// profile claims no measured ranges or training steps. Returns InvalidArgument,
// starting with "new device", if a value is missing or the result is invalid.
absl::StatusOr<DeviceProfile> ProfileOf(const NewDevice& device,
                                        const DeviceProfile& similar);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_NEW_DEVICE_H_
