// SPDX-License-Identifier: Apache-2.0
// Accessors of stage costs.
#include <algorithm>

#include "sim/costs/stage_costs.h"

namespace weir::sim {

double GapAfter(double kernel_seconds, double gap_seconds) {
  return std::max(gap_seconds, -kernel_seconds);
}

double HostWork::Seconds(const Runtime& runtime) const {
  return forward_launches * runtime.forward_launch_seconds().value() +
         backward_launches * runtime.backward_launch_seconds().value() +
         modules * runtime.module_seconds().value() +
         collectives * runtime.collective_launch_seconds().value() +
         passes * runtime.pass_seconds().value();
}

double StageSeconds::Of(schedules::Op op) const {
  switch (op) {
    case schedules::Op::kForward:
      return forward;
    case schedules::Op::kBackward:
      return backward;
    case schedules::Op::kBackwardInput:
      return backward_parts->input;
    case schedules::Op::kBackwardWeight:
      return backward_parts->weight;
    case schedules::Op::kOffload:
    case schedules::Op::kReload:
      return offload.value_or(0);
    case WEIR_UNSCHEDULED_OPS:
      break;
  }
  return 0;
}

double StageSeconds::RingOf(schedules::Op op) const {
  if (op == schedules::Op::kForward) return ring_forward;
  return schedules::MakesInputGradient(op) ? ring_backward : 0;
}

double StageLaunches::SecondsOf(schedules::Op op) const {
  switch (op) {
    case schedules::Op::kForward:
      return forward_seconds;
    case schedules::Op::kBackward:
      return backward_input_seconds + backward_weight_seconds;
    case schedules::Op::kBackwardInput:
      return backward_input_seconds;
    case schedules::Op::kBackwardWeight:
      return backward_weight_seconds;
    case schedules::Op::kOffload:
    case schedules::Op::kReload:
    case WEIR_UNSCHEDULED_OPS:
      break;
  }
  return 0;
}

double StageParameters::first_gathered_bytes(bool forward) const {
  if (!layers.has_value()) return gathered_bytes() / num_layers;
  return forward ? layers->first : layers->last;
}

double StageParameters::first_gathered_expert_bytes(bool forward) const {
  if (!layers.has_value()) return gathered_expert_bytes / num_layers;
  return forward ? layers->first_experts : layers->last_experts;
}

double StageParameters::most_gathered_bytes() const {
  return layers.has_value()
             ? layers->two
             : gathered_bytes() * std::min(2.0 / num_layers, 1.0);
}

double Costs::stepped_part(const StageCosts& stage) const {
  const double num_shards = static_cast<double>(shards) * optimizer_shards;
  if (num_shards == 1 || stage.parameters.expert_gradient_bytes == 0) {
    return 1 / num_shards;
  }
  const double experts =
      stage.parameters.expert_gradient_bytes / stage.parameters.gradient_bytes;
  const double block = expert_tensor > 0
                           ? 1.0 * expert_parallel * expert_tensor / tensor
                           : expert_parallel;
  return (1 - experts) / num_shards + experts * block / num_shards;
}

int Costs::expert_shards() const {
  const int of_expert = expert_tensor > 0 ? expert_tensor : tensor;
  return shards * tensor / (expert_parallel * of_expert);
}

double Costs::sharded_bytes(const StageCosts& stage, double bytes) const {
  if (shards == 1) return bytes;
  return stage.parameters.expert_gradient_bytes > 0
             ? bytes * stepped_part(stage)
             : bytes / shards;
}

}  // namespace weir::sim
