// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/call_prices.h"

namespace weir::sim {

const calibrate::CollectiveCost& CallPrices::Of(
    const CollectiveModel& model, models::CollectiveKind kind, double bytes,
    const calibrate::CollectiveGroup& group) {
  const auto& [num_ranks, ranks_per_node, intra, inter, pci, nvls, sharing] =
      group;
  const auto [at, added] =
      costs_.try_emplace({kind, bytes, num_ranks, ranks_per_node, intra, inter,
                          pci, nvls, sharing});
  if (added)
    at->second = calibrate::CheapestCollective(model, kind, bytes, group);
  return at->second;
}

}  // namespace weir::sim
