// SPDX-License-Identifier: Apache-2.0
// Caps on the power of nodes and racks, which lower the clock of all GPUs.
#ifndef WEIR_PLAN_ENERGY_POWER_CAP_H_
#define WEIR_PLAN_ENERGY_POWER_CAP_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/energy/power.pb.h"

namespace weir::plan {

// Most watts; 0: no cap.
struct PowerCaps {
  double node_watts = 0;
  double rack_watts = 0;
  int nodes_per_rack = 0;  // needed with rack_watts
};

struct CappedClock {
  double megahertz = 0;  // 0: no cap, or the highest clock of a model without
  double speed = 1;      // of passes, part of that at the highest clock
  // The model with the power of passes at the clock.
  PowerModel power;
  // Counts all GPUs of a node as being in the phase with the most power.
  double node_watts = 0;
};

// Returns the highest clock at which a node and a rack are within their caps
// even while all their GPUs compute, or communicate, at once: with G GPUs in a
// node and N nodes in a rack,
//
//   G (max(compute, communication, waiting) + node_watts) <= node cap
//   N G (max(compute, communication, waiting) + node_watts) <= rack cap
//
// Returns InvalidArgument if the lowest clock takes more, or if the model has
// no clocks and its power is above a cap.
absl::StatusOr<CappedClock> ClockWithinCaps(absl::string_view label,
                                            const PowerModel& model,
                                            int gpus_per_node,
                                            const PowerCaps& caps);

}  // namespace weir::plan

#endif  // WEIR_PLAN_ENERGY_POWER_CAP_H_
