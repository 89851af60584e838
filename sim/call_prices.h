// SPDX-License-Identifier: Apache-2.0
// What collectives cost, kept: stages and ranks are mostly alike, and the
// choice of algorithm and protocol is the dearest part of a bound.
#ifndef WEIR_SIM_CALL_PRICES_H_
#define WEIR_SIM_CALL_PRICES_H_

#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "calibrate/collective_seconds.h"

namespace weir {

class CallPrices {
 public:
  // As CheapestCollective, of one and the same model. Valid until the next
  // call.
  const CollectiveCost& Of(const CollectiveModel& model, CollectiveKind kind,
                           double bytes, const CollectiveGroup& group);

 private:
  using Key = std::tuple<CollectiveKind, double, int, int, double, double, bool,
                         bool, double>;

  absl::flat_hash_map<Key, CollectiveCost> costs_;
};

}  // namespace weir

#endif  // WEIR_SIM_CALL_PRICES_H_
