// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/pass_collectives.h"

namespace weir {
namespace {

CollectiveKind KindOf(LayerCollective::Kind kind) {
  switch (kind) {
    case LayerCollective::Kind::kAllGather:
      return CollectiveKind::kAllGather;
    case LayerCollective::Kind::kReduceScatter:
      return CollectiveKind::kReduceScatter;
    case LayerCollective::Kind::kAllToAll:
      return CollectiveKind::kAllToAll;
    default:
      return CollectiveKind::kAllReduce;
  }
}

}  // namespace

void AddCollectivesOf(const Action& action, const Costs& costs, int tensor,
                      PassCollectives* calls) {
  const bool forward = action.op == Op::kForward;
  if (!forward && !MakesInputGradient(action.op)) return;
  const StageCosts& stage = costs.stages[action.stage];
  // Split backwards cannot overlap collectives with weight gradients.
  const bool fused = action.op == Op::kBackward;
  for (const LayerCollective& one :
       forward ? stage.forward_collectives : stage.backward_collectives) {
    const Collectives call = {KindOf(one.kind),
                              one.bytes * action.num_microbatches,
                              static_cast<double>(one.count)};
    if (one.group == LayerCollective::Group::kExpert) {
      if (costs.expert_parallel > 1) calls->experts.push_back(call);
    } else if (tensor > 1) {
      const bool hides = one.overlaps_input_gradient ||
                         (one.overlaps_weight_gradient && fused);
      (hides ? calls->overlapped : calls->in_line).push_back(call);
    }
  }
}

}  // namespace weir
