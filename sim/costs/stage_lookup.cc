// SPDX-License-Identifier: Apache-2.0
// Accessors of stage costs.
#include <algorithm>

#include "schedules/action.h"
#include "sim/costs/stage_costs.h"

namespace weir::sim {

double GapAfter(double kernel_seconds, double gap_seconds) {
  return std::max(gap_seconds, -kernel_seconds);
}

double HostWork::Seconds(const Runtime& runtime) const {
  return forward_launches * runtime.forward_launch_seconds().value() +
         backward_launches * runtime.backward_launch_seconds().value() +
         collectives * runtime.collective_launch_seconds().value() +
         passes * runtime.pass_seconds().value();
}

double StageCosts::seconds_of(int op) const {
  switch (static_cast<schedules::Op>(op)) {
    case schedules::Op::kForward:
      return forward_seconds;
    case schedules::Op::kBackward:
      return backward_seconds;
    case schedules::Op::kBackwardInput:
      return backward_input_seconds;
    case schedules::Op::kBackwardWeight:
      return backward_weight_seconds;
    case schedules::Op::kOffload:
    case schedules::Op::kReload:
      return offload_seconds;
  }
  return 0;
}

double StageCosts::first_gathered_bytes(bool forward) const {
  const double bytes = forward ? first_layer_bytes : last_layer_bytes;
  return bytes > 0 ? bytes : weight_bytes / num_parameter_layers;
}

double StageCosts::most_gathered_bytes() const {
  return two_layers_bytes > 0
             ? two_layers_bytes
             : weight_bytes * std::min(2.0 / num_parameter_layers, 1.0);
}

double Costs::stepped_part(const StageCosts& stage) const {
  const double num_shards = static_cast<double>(shards) * optimizer_shards;
  if (num_shards == 1 || stage.expert_gradient_bytes == 0) {
    return 1 / num_shards;
  }
  const double experts = stage.expert_gradient_bytes / stage.gradient_bytes;
  return (1 - experts) / num_shards + experts * expert_parallel / num_shards;
}

double StageCosts::host_seconds_of(int op) const {
  switch (static_cast<schedules::Op>(op)) {
    case schedules::Op::kForward:
      return forward_host_seconds;
    case schedules::Op::kBackward:
      return backward_input_host_seconds + backward_weight_host_seconds;
    case schedules::Op::kBackwardInput:
      return backward_input_host_seconds;
    case schedules::Op::kBackwardWeight:
      return backward_weight_host_seconds;
    default:
      return 0;
  }
}

}  // namespace weir::sim
