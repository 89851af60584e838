// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/pass_collectives.h"

namespace weir::sim {
void AddCollectivesOf(const schedules::Action& action, const Costs& costs,
                      int tensor, PassCollectives* calls) {
  const bool forward = action.op == schedules::Op::kForward;
  if (!forward && !schedules::MakesInputGradient(action.op)) return;
  const StageCosts& stage = costs.stages[action.stage];
  // Split backwards cannot overlap collectives with weight gradients.
  const bool fused = action.op == schedules::Op::kBackward;
  for (const models::LayerCollective& one :
       forward ? stage.communication.forward_collectives
               : stage.communication.backward_collectives) {
    Collectives call = {one.kind, one.bytes * action.num_microbatches,
                        static_cast<double>(one.count), one.routing};
    call.routing.tokens *= action.num_microbatches;
    if (one.group == models::LayerCollective::Group::kExpert) {
      if (costs.expert_parallel > 1) calls->experts.push_back(call);
    } else if (one.group == models::LayerCollective::Group::kExpertTensor) {
      calls->expert_tensor.push_back(call);
    } else if (one.group == models::LayerCollective::Group::kContext) {
      (models::IsRing(one) ? calls->ring : calls->context).push_back(call);
    } else if (tensor > 1) {
      const bool hides = one.overlaps_input_gradient ||
                         (one.overlaps_weight_gradient && fused);
      (hides ? calls->overlapped : calls->in_line).push_back(call);
    }
  }
}

double RingSeconds(const schedules::Action& action, const StageCosts& stage) {
  return stage.seconds.RingOf(action.op) * action.num_microbatches;
}

}  // namespace weir::sim
