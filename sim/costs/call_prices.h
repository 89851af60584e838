// SPDX-License-Identifier: Apache-2.0
// A cache of collective costs. Stages and ranks are mostly alike, and choosing
// the algorithm and the protocol is the most expensive part of a bound.
#ifndef WEIR_SIM_COSTS_CALL_PRICES_H_
#define WEIR_SIM_COSTS_CALL_PRICES_H_

#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "calibrate/pricing/collective_seconds.h"

namespace weir::sim {

class CallPrices {
 public:
  // Returns CheapestCollective(model, kind, bytes, group). The reference is
  // valid until the next call. Requires: `model` is the same in all calls.
  const calibrate::CollectiveCost& Of(const CollectiveModel& model,
                                      models::CollectiveKind kind, double bytes,
                                      const calibrate::CollectiveGroup& group);

 private:
  using Key = std::tuple<models::CollectiveKind, double, int, int, double,
                         double, bool, bool, double>;

  absl::flat_hash_map<Key, calibrate::CollectiveCost> costs_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_CALL_PRICES_H_
