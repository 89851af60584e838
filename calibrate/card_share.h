// SPDX-License-Identifier: Apache-2.0
// Devices that are parts of a card: how much longer a pass takes while other
// parts work.
#ifndef WEIR_CALIBRATE_CARD_SHARE_H_
#define WEIR_CALIBRATE_CARD_SHARE_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "calibrate/device_profile.pb.h"

namespace weir {

inline constexpr absl::string_view kSharedPasses[] = {
    "forward", "backward_input", "backward_weight", "optimizer"};

// Of a pass while 1, 2, ... num_partitions parts work: linear between two that
// were measured, beyond the last one as there; 1 for a part alone, and of a
// pass that was not measured. REQUIRES: CheckCardShare() found nothing.
std::vector<double> SharingCurve(const CardShare& share,
                                 absl::string_view pass);

// Everything that is wrong with a profile's card_share; absent: nothing.
void CheckCardShare(const DeviceProfile& profile, Problems* problems);

}  // namespace weir

#endif  // WEIR_CALIBRATE_CARD_SHARE_H_
