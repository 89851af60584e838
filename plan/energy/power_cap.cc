// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/power_cap.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_format.h"

namespace weir::plan {

absl::StatusOr<CappedClock> ClockWithinCaps(absl::string_view label,
                                            const PowerModel& model,
                                            int gpus_per_node,
                                            const PowerCaps& caps) {
  double most = std::numeric_limits<double>::infinity();  // of a node
  if (caps.node_watts > 0) most = caps.node_watts;
  if (caps.rack_watts > 0) {
    most = std::min(most, caps.rack_watts / std::max(caps.nodes_per_rack, 1));
  }
  // Without clocks there is only the highest.
  const int num_clocks = std::max(model.clocks_size(), 1);
  CappedClock clock;
  for (int i = 0; i < num_clocks; ++i) {
    clock = {};
    clock.power = model;
    if (model.clocks_size() > 0) {
      const PowerModel::Clock& own = model.clocks(i);
      clock.megahertz = own.megahertz();
      clock.speed = own.speed().value();
      clock.power.mutable_compute_watts()->set_value(
          model.compute_watts().value() * own.power().value());
    }
    const double gpu = std::max({clock.power.compute_watts().value(),
                                 clock.power.communication_watts().value(),
                                 clock.power.waiting_watts().value()});
    clock.node_watts = gpus_per_node * (gpu + clock.power.node_watts().value());
    if (clock.node_watts <= most) return clock;
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: a node of %d GPUs may take %g W, but takes %g W %s, expected a "
      "higher power cap%s",
      label, gpus_per_node, most, clock.node_watts,
      model.clocks_size() > 0
          ? absl::StrFormat("at the lowest clock, %g MHz", clock.megahertz)
          : absl::StrFormat("with the power model %s", model.name()),
      model.clocks_size() > 0 ? "" : ", or a power model with clocks"));
}

}  // namespace weir::plan
