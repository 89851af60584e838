// SPDX-License-Identifier: Apache-2.0
// The best chain of heterogeneous devices for a chain of layers: dynamic
// programming over (layers left, devices used of each type, type of the nearest
// stage), from the last layer to the first. This is EdgePipe's program, with
// counts of identical devices instead of sets, and AccEPT's, with two costs.
#ifndef WEIR_PLAN_PAPERS_DEVICE_CHAIN_H_
#define WEIR_PLAN_PAPERS_DEVICE_CHAIN_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/papers/device_types.h"

namespace weir::plan {

struct ChainCosts {
  int num_layers = 0;
  // Returns the time of layers [first, end) on a device of the type.
  std::function<double(int type, int first, int end)> stage_seconds;
  // Returns the largest number of stages from this one to the end with which
  // the layers fit its memory; below 1 if they never fit or cannot be a stage.
  std::function<double(int type, int first, int end)> max_stages_left;
  // Returns the time of a transfer over a cut before `layer`.
  std::function<double(int from, int to, int layer)> transfer_seconds;
  // The objective is sum_weight * (sum of all stages and hops) +
  // bottleneck_weight * (maximum of stages and transfers). A hop takes
  // hops_per_transfer transfers.
  double sum_weight = 0, bottleneck_weight = 1, hops_per_transfer = 1;
};

struct DeviceChain {
  double objective_seconds = 0, bottleneck_seconds = 0, sum_seconds = 0;
  std::vector<PlannedStage> stages;  // one device each
};

// Exact. There are layers x product of (devices of a type + 1) x types states,
// each tried with every earlier layer and every type; with a sum, each keeps
// its Pareto front of (bottleneck, sum) pairs. Returns InvalidArgument if there
// are more than 2e7 states or 2e9 transitions, NotFound if nothing fits.
absl::StatusOr<DeviceChain> BestDeviceChain(absl::string_view planner,
                                            const DeviceTypes& types,
                                            const ChainCosts& costs);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_DEVICE_CHAIN_H_
