// SPDX-License-Identifier: Apache-2.0
// Symmetry reductions (symmetry.h) of scenarios, kept from one scenario to the
// next.
#ifndef WEIR_SIM_GRAPH_SYMMETRIES_H_
#define WEIR_SIM_GRAPH_SYMMETRIES_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "base/bounded_cache.h"
#include "scenarios/cluster/network.h"
#include "scenarios/scenario.h"
#include "schedules/schedule.h"
#include "sim/costs/stage_costs.h"
#include "sim/graph/representatives.h"
#include "sim/graph/symmetry.h"

namespace weir::sim {

// Returns a key of everything that the scenario's network depends on.
std::string NetworkKey(const scenarios::ResolvedScenario& scenario);

// Returns the traffic that the schedule alone determines: sends between ranks,
// stages with copies on several ranks, and offloads.
Traffic TrafficOf(const schedules::Schedule& schedule);

// Adds the traffic that the layout and the costs determine.
Traffic WholeTraffic(Traffic traffic, const scenarios::Placement& place,
                     const schedules::Schedule& schedule, const Costs& costs);

struct SymmetryResult {
  std::optional<Symmetry> symmetry;  // absent: it cannot be reduced
  absl::string_view why_not = {};    // the reason in that case

  // Returns the GPUs to simulate; all of `placement` if it cannot be reduced.
  Representatives GpusOf(const scenarios::Placement& placement) const {
    return symmetry.has_value() ? Representatives(*symmetry)
                                : Representatives(placement);
  }
};

class SymmetryCache {
 public:
  // `traffic` is TrafficOf(schedule), `costs` those after ApplySchedule.
  std::shared_ptr<const SymmetryResult> SymmetryOf(
      const scenarios::ResolvedScenario& scenario,
      const scenarios::Network& network, const schedules::Schedule& schedule,
      const Traffic& traffic, const Costs& costs);

 private:
  BoundedCache<SymmetryResult> symmetries_{1 << 20};  // weight in GPUs
};

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_SYMMETRIES_H_
