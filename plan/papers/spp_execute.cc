// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "plan/papers/spp.h"
#include "schedules/systems/list_order.h"

namespace weir::plan {
namespace {

// Executes at most kMostExecuted microbatches. Each further one takes as long
// as the busiest stage or link needs for it, as in the bound of spp.h, and the
// microbatches that a stage saves grow as in the last half of the executed
// ones.
schedules::ListOrder LongOrderOf(const std::vector<double>& forward,
                                 const std::vector<double>& backward, int m) {
  if (m <= kMostExecuted) return schedules::ListOrderOf(forward, backward, m);
  const int half = kMostExecuted / 2;
  const schedules::ListOrder shorter =
      schedules::ListOrderOf(forward, backward, half);
  schedules::ListOrder order =
      schedules::ListOrderOf(forward, backward, kMostExecuted);
  double busiest = 0;
  for (size_t i = 0; i < forward.size(); ++i) {
    busiest = std::max(busiest, forward[i] + backward[i]);
  }
  const int left = m - kMostExecuted;
  for (size_t s = 0; s < order.ends.size(); ++s) {
    order.ends[s] += left * busiest;
    const double growth =
        1.0 * (order.most_kept[s] - shorter.most_kept[s]) / half;
    order.most_kept[s] += static_cast<int>(std::ceil(growth * left));
  }
  return order;
}

}  // namespace

SppExecution ExecuteSpp(const PlannerWork& work,
                        const std::vector<PlannedStage>& stages) {
  const SppWorkload load = SppWorkloadOf(work, stages);
  const int m = work.num_microbatches;
  std::vector<double> forward, backward;
  for (size_t s = 0; s < stages.size(); ++s) {
    if (s > 0) {
      const double transfer = load.transfer_seconds[s - 1] / m / 2;
      forward.push_back(transfer);
      backward.push_back(transfer);
    }
    double layers_forward = 0, layers_backward = 0;
    for (int l = stages[s].first_layer; l < stages[s].end_layer; ++l) {
      layers_forward += work.layers[l].forward_seconds;
      layers_backward += work.layers[l].backward_seconds;
    }
    const double both = layers_forward + layers_backward;
    const double part = both > 0 ? layers_forward / both : 0;
    forward.push_back(load.stage_seconds[s] / m * part);
    backward.push_back(load.stage_seconds[s] / m * (1 - part));
  }
  const schedules::ListOrder order = LongOrderOf(forward, backward, m);
  SppExecution execution;
  execution.most_kept = order.most_kept;
  for (size_t s = 0; s < stages.size(); ++s) {
    execution.seconds =
        std::max(execution.seconds, order.ends[s] + load.all_reduce_seconds[s]);
  }
  return execution;
}

}  // namespace weir::plan
