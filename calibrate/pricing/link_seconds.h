// SPDX-License-Identifier: Apache-2.0
// Send and receive times from measured pairs of GPUs.
#ifndef WEIR_CALIBRATE_PRICING_LINK_SECONDS_H_
#define WEIR_CALIBRATE_PRICING_LINK_SECONDS_H_

#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

// Returns the measured class of this distance, or null. If the leaf switches
// were unknown, all pairs of nodes were measured as ACROSS_SPINES, which then
// serves as SAME_LEAF too.
const LinkClass* FindLink(const DeviceProfile& profile,
                          LinkClass::Distance distance);

// Uncontended time of a message, off and on the links.
struct LinkTime {
  double latency_seconds = 0, link_seconds = 0;

  double Seconds() const { return latency_seconds + link_seconds; }
};
// Requires: the class is valid; bytes >= 0.
LinkTime LinkTimeOf(const LinkClass& link, double bytes);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PRICING_LINK_SECONDS_H_
