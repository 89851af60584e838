// SPDX-License-Identifier: Apache-2.0
// Device profiles in words and numbers, and what two of them differ in.
#ifndef WEIR_CALIBRATE_DESCRIBE_PROFILE_H_
#define WEIR_CALIBRATE_DESCRIBE_PROFILE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "calibrate/device_profile.pb.h"

namespace weir {

// "s" of launch_seconds, "B/s" of memory_bytes_per_second; empty: a part or a
// count.
absl::string_view UnitOf(absl::string_view path);

// Measured kernels of one part and format.
struct KernelSummary {
  std::string part, format;
  int count = 0, num_throttled = 0;
  double least_m = 0, most_m = 0;  // 0: they only move bytes
  // Median seconds over what the figures say: the least, the median of them,
  // the most.
  double least = 0, median = 0, most = 0;
};
// In the order of KernelPart.
std::vector<KernelSummary> SummarizeKernels(const DeviceProfile& profile);

// What `weir profile show` prints: provenance; every figure with value, unit,
// kind and source; kernels, stages, memory and links that were measured; of a
// part of a card what other parts do to it; what the figures cover. REQUIRES:
// the profile is valid, also below.
std::string DescribeProfile(const DeviceProfile& profile);
nlohmann::ordered_json ProfileJson(const DeviceProfile& profile);

struct FigureDifference {
  std::string path;  // "card_share.forward[4]": its factor beside three others
  bool in_a = false, in_b = false;
  double a = 0, b = 0;

  double ratio() const;  // b / a; infinite where one of them has none
};
struct KernelDifference {
  std::string kernel;  // "projection_product bf16 1 x 512 x 2304 x 768"
  double a = 0, b = 0;
  double ratio() const { return b / a; }
};
struct VersionDifference {
  std::string name, a, b;
};
struct ProfileDifference {
  std::vector<VersionDifference> versions;
  std::vector<FigureDifference> figures;  // that differ
  // That both have measured, worst first; and how many only one has.
  std::vector<KernelDifference> kernels;
  int num_only_a = 0, num_only_b = 0;

  // |ratio - 1| of the figure or kernel that differs most.
  double Largest() const;
};
ProfileDifference DiffProfiles(const DeviceProfile& a, const DeviceProfile& b);

std::string DescribeDifference(absl::string_view name_a,
                               absl::string_view name_b,
                               const ProfileDifference& difference);
nlohmann::ordered_json DifferenceJson(const ProfileDifference& difference);

}  // namespace weir

#endif  // WEIR_CALIBRATE_DESCRIBE_PROFILE_H_
