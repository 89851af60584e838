// SPDX-License-Identifier: Apache-2.0
#include "schedules/pass_costs.h"

namespace weir::schedules {

const StagePassCosts& PassCosts::of(int stage) const {
  static const StagePassCosts& unit = *new StagePassCosts;
  if (stages.empty()) return unit;
  return stages.size() == 1 ? stages.front() : stages[stage];
}

double PassCosts::duration(const Action& action) const {
  const StagePassCosts& costs = of(action.stage);
  const auto one = [&] {
    switch (action.op) {
      case Op::kForward:
        return costs.forward;
      case Op::kBackward:
        return costs.fused_backward();
      case Op::kBackwardInput:
        return costs.backward_input;
      case Op::kBackwardWeight:
        return costs.backward_weight;
      case Op::kOffload:
      case Op::kReload:
        return costs.offload;
      case WEIR_UNSCHEDULED_OPS:
        break;
    }
    return 0.0;
  };
  return one() * action.num_microbatches;
}

double PassCosts::overlapped(const Action& one, const Action& other) const {
  const Action& forward = one.op == Op::kForward ? one : other;
  const std::optional<double>& given = of(forward.stage).overlapped;
  if (given.has_value()) return *given * forward.num_microbatches;
  return duration(one) + duration(other);
}

}  // namespace weir::schedules
