// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/edgepipe.h"

#include <algorithm>

#include "base/status_macros.h"
#include "plan/papers/device_chain.h"
#include "plan/papers/layer_sums.h"

namespace weir::plan {
namespace {

double MemoryBytes(const PlannerWork& work, const LayerSums& sums, int first,
                   int end, const EdgePipeOptions& options) {
  const double in =
      first == 0 ? work.layers[0].input_bytes : sums.cut_bytes(first);
  const double out = work.layers[end - 1].output_bytes;
  return sums.parameter_bytes(first, end) + in + out +
         (first > 0 ? options.buffers_in * in : 0) + options.buffers_out * out;
}

}  // namespace

double EdgePipeMemoryBytes(const PlannerWork& work, int first, int end,
                           const EdgePipeOptions& options) {
  return MemoryBytes(work, LayerSums(work.layers), first, end, options);
}

double EdgePipeSeconds(const PlannerWork& work,
                       const std::vector<PlannedStage>& stages) {
  const LayerSums sums(work.layers);
  double slowest = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    const int device = stages[s].devices[0];
    slowest = std::max(
        slowest, sums.forward(stages[s].first_layer, stages[s].end_layer) /
                     work.devices[device].speed);
    if (s == 0) continue;
    const int before = stages[s - 1].devices[0];
    slowest = std::max(slowest, sums.cut_bytes(stages[s].first_layer) /
                                    work.bytes_per_second[before][device]);
  }
  return slowest;
}

absl::StatusOr<PlannedPipeline> PlanEdgePipe(const PlannerWork& work,
                                             const EdgePipeOptions& options) {
  RETURN_IF_ERROR(CheckPlannerWork("edgepipe", work));
  const LayerSums sums(work.layers);
  const DeviceTypes types = DeviceTypesOf(work);
  const auto device = [&](int type) -> const PlannerDevice& {
    return work.devices[types.devices[type].front()];
  };
  ChainCosts costs;
  costs.num_layers = sums.num_layers();
  costs.stage_seconds = [&](int type, int first, int end) {
    return sums.forward(first, end) / device(type).speed;
  };
  costs.max_stages_left = [&](int type, int first, int end) {
    const bool fits = sums.MayBeStage(first, end) &&
                      MemoryBytes(work, sums, first, end, options) <
                          device(type).memory_bytes;
    return fits ? static_cast<double>(work.devices.size()) : 0.0;
  };
  costs.transfer_seconds = [&](int from, int to, int layer) {
    return sums.cut_bytes(layer) / types.bytes_per_second[from][to];
  };
  ASSIGN_OR_RETURN(const DeviceChain chain,
                   BestDeviceChain("edgepipe", types, costs));
  PlannedPipeline plan;
  plan.algorithm = "edgepipe";
  plan.schedule = "edgepipe";
  plan.objective_seconds = chain.objective_seconds;
  plan.objectives_per_batch = work.num_microbatches;
  plan.inference = true;
  plan.stages = chain.stages;
  plan.num_microbatches = work.num_microbatches;
  return plan;
}

}  // namespace weir::plan
