// SPDX-License-Identifier: Apache-2.0
// Text and JSON reports of device profiles and of the difference between two.
#ifndef WEIR_CALIBRATE_DESCRIBE_DESCRIBE_PROFILE_H_
#define WEIR_CALIBRATE_DESCRIBE_DESCRIBE_PROFILE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

// Returns the unit of a parameter: "s" for launch_seconds, "B/s" for
// memory_bytes_per_second, empty for fractions and counts.
absl::string_view UnitOf(absl::string_view path);

// Measured kernels of one part and format.
struct KernelSummary {
  std::string part, format;
  int count = 0, num_throttled = 0;
  double least_m = 0, most_m = 0;  // 0 for kernels that only move bytes
  // Minimum, median and maximum of measured seconds over seconds predicted from
  // the model parameters.
  double least = 0, median = 0, most = 0;
};
// Returns one summary per part and format, in the order of KernelPart.
std::vector<KernelSummary> SummarizeKernels(const DeviceProfile& profile);

// Returns the output of `weir profile show`: provenance; every model parameter
// with value, unit, kind and source; measured kernels, stages, memory and
// links; the slowdown by other partitions for a GPU partition; and the coverage
// of the model parameters. Requires: the profile is valid; also for the
// functions below.
std::string DescribeProfile(const DeviceProfile& profile);
nlohmann::ordered_json ProfileJson(const DeviceProfile& profile);

struct FigureDifference {
  // "partition_slowdown.forward[4]": factor while four partitions work.
  std::string path;
  bool in_a = false, in_b = false;
  double a = 0, b = 0;

  double ratio() const;  // b / a; infinite if one profile lacks it
};
struct KernelDifference {
  std::string kernel;  // "projection_gemm bf16 1 x 512 x 2304 x 768"
  double a = 0, b = 0;
  double ratio() const { return b / a; }
};
struct VersionDifference {
  std::string name, a, b;
};
struct ProfileDifference {
  std::vector<VersionDifference> versions;
  std::vector<FigureDifference> figures;  // Parameters that differ.
  // Kernels measured in both profiles, largest difference first, and the number
  // of kernels measured in only one.
  std::vector<KernelDifference> kernels;
  int num_only_a = 0, num_only_b = 0;

  // Returns |ratio - 1| of the parameter or kernel that differs most.
  double Largest() const;
};
ProfileDifference DiffProfiles(const DeviceProfile& a, const DeviceProfile& b);

std::string DescribeDifference(absl::string_view name_a,
                               absl::string_view name_b,
                               const ProfileDifference& difference);
nlohmann::ordered_json DifferenceJson(const ProfileDifference& difference);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_DESCRIBE_DESCRIBE_PROFILE_H_
