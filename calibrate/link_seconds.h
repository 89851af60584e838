// SPDX-License-Identifier: Apache-2.0
// What a send and receive takes where such pairs of GPUs were measured.
#ifndef WEIR_CALIBRATE_LINK_SECONDS_H_
#define WEIR_CALIBRATE_LINK_SECONDS_H_

#include "calibrate/device_profile.pb.h"

namespace weir {

// The measured class of this distance; null where there is none. Where nobody
// knew the leaf switches, all pairs of nodes were measured as ACROSS_SPINES:
// they stand for SAME_LEAF too.
const LinkClass* FindLink(const DeviceProfile& profile,
                          LinkClass::Distance distance);

// Of a message alone: what is not on the links, and what is.
struct LinkTime {
  double latency_seconds = 0, link_seconds = 0;

  double Seconds() const { return latency_seconds + link_seconds; }
};
// REQUIRES: the class is valid; bytes >= 0.
LinkTime LinkTimeOf(const LinkClass& link, double bytes);

}  // namespace weir

#endif  // WEIR_CALIBRATE_LINK_SECONDS_H_
