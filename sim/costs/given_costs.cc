// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/given_costs.h"

namespace weir::sim {

Costs GivenCostsOf(const Scenario& scenario, int num_stages) {
  Costs costs;
  const GivenCosts& all = scenario.costs();
  for (int s = 0; s < num_stages; ++s) {
    const auto& given = all.stages(all.stages_size() == 1 ? 0 : s);
    StageCosts stage;
    StageSeconds& seconds = stage.seconds;
    seconds.forward = given.forward_seconds();
    if (given.has_backward_seconds()) {
      seconds.backward = given.backward_seconds();
    } else {
      seconds.backward_parts = {given.backward_input_seconds(),
                                given.backward_weight_seconds()};
      seconds.backward =
          given.backward_input_seconds() + given.backward_weight_seconds();
    }
    if (given.has_overlapped_seconds()) {
      seconds.overlapped = given.overlapped_seconds();
    }
    seconds.offload = given.offload_seconds();
    seconds.prediction = given.prediction_seconds();
    seconds.codec = given.codec_seconds();
    stage.activations.saved_bytes = given.activation_bytes();
    stage.activations.weight_gradient_stash_bytes =
        given.has_weight_gradient_bytes() ? given.weight_gradient_bytes()
                                          : given.activation_bytes();
    costs.stages.push_back(stage);
  }
  return costs;
}

}  // namespace weir::sim
