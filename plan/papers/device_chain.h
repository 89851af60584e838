// SPDX-License-Identifier: Apache-2.0
// The best chain of unlike devices for a chain of layers: dynamic programming
// over (layers left, devices used of each type, type of the nearest stage),
// from the last layer to the first. EdgePipe's, with devices that are alike
// counted instead of named; AccEPT's, with two costs.
#ifndef WEIR_PLAN_PAPERS_DEVICE_CHAIN_H_
#define WEIR_PLAN_PAPERS_DEVICE_CHAIN_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/papers/device_types.h"

namespace weir {

struct ChainCosts {
  int num_layers = 0;
  // Seconds that layers [first, end) take on a device of the type.
  std::function<double(int type, int first, int end)> stage_seconds;
  // Most stages from here to the end, this one included, at which they still
  // fit its memory; below 1 they never do, or may not be a stage.
  std::function<double(int type, int first, int end)> max_stages_left;
  // Over a cut before `layer`.
  std::function<double(int from, int to, int layer)> transfer_seconds;
  // The objective is sum_weight * (all stages and hops) +
  // bottleneck_weight * (the slowest of stages and transfers). A hop takes
  // hops_per_transfer transfers.
  double sum_weight = 0, bottleneck_weight = 1, hops_per_transfer = 1;
};

struct DeviceChain {
  double objective_seconds = 0, bottleneck_seconds = 0, sum_seconds = 0;
  std::vector<PlannedStage> stages;  // a device each
};

// Exact. States are layers x product of (devices of a type + 1) x types, each
// tried with every layer before it and every type; with a sum, each keeps all
// pairs of bottleneck and sum that no other undercuts in both. InvalidArgument
// when there are more than 2e7 states or 2e9 tries, NotFound when nothing fits.
absl::StatusOr<DeviceChain> BestDeviceChain(absl::string_view planner,
                                            const DeviceTypes& types,
                                            const ChainCosts& costs);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_DEVICE_CHAIN_H_
