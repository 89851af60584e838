// SPDX-License-Identifier: Apache-2.0
// What a generator may know of the passes it orders: how long they take and
// how much they hold, in any unit. The order of an automatic schedule depends
// on it; a schedule itself holds none of it.
#ifndef WEIR_SCHEDULES_PASS_COSTS_H_
#define WEIR_SCHEDULES_PASS_COSTS_H_

#include <optional>
#include <vector>

#include "schedules/action.h"

namespace weir {

// One microbatch in one stage.
struct StagePassCosts {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  std::optional<double> backward = {};    // B; I and W together unless given
  std::optional<double> overlapped = {};  // F beside B; F + B unless given
  double offload = 1;                     // one way over the host link

  double activation = 1;              // held from F to B or I
  double weight_gradient_inputs = 1;  // held from I to W

  double fused_backward() const {
    return backward.value_or(backward_input + backward_weight);
  }
};

struct PassCosts {
  std::vector<StagePassCosts> stages = {};  // per stage, one for all, or none
  double hop = 0;  // latency between ranks, occupies nobody

  const StagePassCosts& of(int stage) const;
  // All microbatches of the action; alone, not as half of an overlapped pair.
  double duration(const Action& action) const;
  // Of a pair that runs together.
  double overlapped(const Action& one, const Action& other) const;
};

}  // namespace weir

#endif  // WEIR_SCHEDULES_PASS_COSTS_H_
