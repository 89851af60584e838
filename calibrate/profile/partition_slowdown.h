// SPDX-License-Identifier: Apache-2.0
// Slowdown of a pass on one partition of a GPU while other partitions work.
#ifndef WEIR_CALIBRATE_PROFILE_PARTITION_SLOWDOWN_H_
#define WEIR_CALIBRATE_PROFILE_PARTITION_SLOWDOWN_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

inline constexpr absl::string_view kSharedPasses[] = {
    "forward", "backward_input", "backward_weight", "optimizer"};

// Returns the factor by which a pass slows down while 1, 2, ... num_partitions
// partitions work. The factor is interpolated linearly between measured counts
// and constant beyond the last one. It is 1 for a single active partition and
// for a pass that was not measured. Requires: CheckPartitionSlowdown() reports
// no problem.
std::vector<double> SharingCurve(const PartitionSlowdown& share,
                                 absl::string_view pass);

// Reports all problems with a profile's partition_slowdown. An absent one is
// valid.
void CheckPartitionSlowdown(const DeviceProfile& profile, Problems* problems);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PROFILE_PARTITION_SLOWDOWN_H_
