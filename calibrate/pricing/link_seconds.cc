// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pricing/link_seconds.h"

#include <algorithm>

namespace weir::calibrate {

const LinkClass* FindLink(const DeviceProfile& profile,
                          LinkClass::Distance distance) {
  for (const LinkClass& link : profile.links()) {
    if (link.distance() == distance) return &link;
  }
  return distance == LinkClass::SAME_LEAF
             ? FindLink(profile, LinkClass::ACROSS_SPINES)
             : nullptr;
}

LinkTime LinkTimeOf(const LinkClass& link, double bytes) {
  const TransferPiece* piece = &link.pieces(0);
  for (const TransferPiece& next : link.pieces()) {
    if (next.from_bytes() <= bytes) piece = &next;
  }
  // A negative fitted latency counts as 0 latency: the links take all the time.
  const double latency = std::max(piece->latency_seconds(), 0.0);
  const double seconds =
      piece->latency_seconds() + bytes / piece->bytes_per_second();
  return {latency, std::max(seconds - latency, 0.0)};
}

}  // namespace weir::calibrate
