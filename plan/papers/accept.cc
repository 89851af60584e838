// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/accept.h"

#include <algorithm>
#include <cmath>

#include "base/problems.h"
#include "base/status_macros.h"
#include "plan/papers/device_chain.h"
#include "plan/papers/layer_sums.h"

namespace weir::plan {
namespace {

absl::Status Check(const PlannerWork& work, const AcceptOptions& options) {
  RETURN_IF_ERROR(CheckPlannerWork("accept", work));
  Problems problems("accept");
  problems.CheckPositive("compression_ratio", options.compression_ratio);
  problems.CheckRange("compress_bytes_per_second",
                      options.compress_bytes_per_second, 0, HUGE_VAL);
  problems.CheckRange("decompress_bytes_per_second",
                      options.decompress_bytes_per_second, 0, HUGE_VAL);
  return problems.ToStatus();
}

// Returns the largest number of stages, from this one to the end, with which
// layers [first, end) fit `memory_bytes`.
double MaxStagesLeft(const LayerSums& sums, int first, int end,
                     double memory_bytes, int num_microbatches) {
  if (!sums.MayBeStage(first, end)) return 0;
  const auto fits = [&](int in_flight) {
    return sums.memory_bytes(first, end, in_flight) <= memory_bytes;
  };
  if (fits(num_microbatches)) return HUGE_VAL;
  int low = 0, high = num_microbatches;  // fits `low`, not `high`
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

double AcceptTransferSeconds(double bytes, double bytes_per_second,
                             const AcceptOptions& options) {
  double seconds = bytes * options.compression_ratio / bytes_per_second;
  for (double rate : {options.compress_bytes_per_second,
                      options.decompress_bytes_per_second}) {
    if (rate > 0) seconds += bytes / rate;
  }
  return seconds;
}

double AcceptSeconds(const PlannerWork& work,
                     const std::vector<PlannedStage>& stages,
                     const AcceptOptions& options) {
  const LayerSums sums(work.layers);
  double sum = 0, bottleneck = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    const int device = stages[s].devices[0];
    const double seconds =
        sums.seconds(stages[s].first_layer, stages[s].end_layer) /
        work.devices[device].speed;
    double transfer = 0;
    if (s > 0) {
      const int before = stages[s - 1].devices[0];
      transfer =
          AcceptTransferSeconds(sums.cut_bytes(stages[s].first_layer),
                                work.bytes_per_second[before][device], options);
    }
    sum += seconds + 2 * transfer;
    bottleneck = std::max({bottleneck, seconds, transfer});
  }
  return sum + (work.num_microbatches - 1) * bottleneck;
}

absl::StatusOr<PlannedPipeline> PlanAccept(const PlannerWork& work,
                                           const AcceptOptions& options) {
  RETURN_IF_ERROR(Check(work, options));
  const LayerSums sums(work.layers);
  const DeviceTypes types = DeviceTypesOf(work);
  const auto device = [&](int type) -> const PlannerDevice& {
    return work.devices[types.devices[type].front()];
  };
  ChainCosts costs;
  costs.num_layers = sums.num_layers();
  costs.sum_weight = 1;
  costs.bottleneck_weight = work.num_microbatches - 1;
  costs.hops_per_transfer = 2;
  costs.stage_seconds = [&](int type, int first, int end) {
    return sums.seconds(first, end) / device(type).speed;
  };
  costs.max_stages_left = [&](int type, int first, int end) {
    return MaxStagesLeft(sums, first, end, device(type).memory_bytes,
                         work.num_microbatches);
  };
  costs.transfer_seconds = [&](int from, int to, int layer) {
    return AcceptTransferSeconds(sums.cut_bytes(layer),
                                 types.bytes_per_second[from][to], options);
  };
  ASSIGN_OR_RETURN(const DeviceChain chain,
                   BestDeviceChain("accept", types, costs));
  PlannedPipeline plan;
  plan.algorithm = "accept";
  plan.schedule = "accept";
  plan.objective_seconds = chain.objective_seconds;
  plan.stages = chain.stages;
  plan.num_microbatches = work.num_microbatches;
  return plan;
}

}  // namespace weir::plan
