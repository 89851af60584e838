// SPDX-License-Identifier: Apache-2.0
// Max-min fair sharing by progressive filling, the reference for SimGrid's
// results. Shares no code with the simulator.
#ifndef WEIR_TESTS_MAX_MIN_H_
#define WEIR_TESTS_MAX_MIN_H_

#include <cstddef>
#include <vector>

namespace weir::max_min {

struct Flow {
  std::vector<size_t> links;  // indices into the capacities
  double ready_seconds = 0;   // start of its latency; sharing begins after it
  double latency_seconds = 0;
  double bytes = 0;
};

// Returns the end time of each flow in seconds. Capacities are in bytes per
// second.
std::vector<double> EndSeconds(const std::vector<double>& capacities,
                               const std::vector<Flow>& flows);

}  // namespace weir::max_min

#endif  // WEIR_TESTS_MAX_MIN_H_
