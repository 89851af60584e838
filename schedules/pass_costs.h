// SPDX-License-Identifier: Apache-2.0
// Costs of passes for generators: time and memory in any units. An automatic
// schedule orders passes by them; a schedule itself contains no costs.
#ifndef WEIR_SCHEDULES_PASS_COSTS_H_
#define WEIR_SCHEDULES_PASS_COSTS_H_

#include <optional>
#include <vector>

#include "schedules/action.h"

namespace weir::schedules {

// Costs of one microbatch in one stage.
struct StagePassCosts {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  std::optional<double> backward = {};    // B; default: I + W
  std::optional<double> overlapped = {};  // F with B; default: F + B
  double offload = 1;                     // one direction on the host link

  double activation = 1;              // memory from F to B or I
  double weight_gradient_inputs = 1;  // memory from I to W

  double fused_backward() const {
    return backward.value_or(backward_input + backward_weight);
  }
};

struct PassCosts {
  std::vector<StagePassCosts> stages = {};  // per stage, one for all, or none
  double hop = 0;  // latency between ranks; occupies no rank

  const StagePassCosts& of(int stage) const;
  // Returns the time of all microbatches of the action when it is not
  // overlapped.
  double duration(const Action& action) const;
  // Returns the time of an overlapped pair.
  double overlapped(const Action& one, const Action& other) const;
};

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_PASS_COSTS_H_
