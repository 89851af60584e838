// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/given_costs.h"

#include <utility>
#include <vector>

namespace weir::sim {

namespace {

std::vector<StageCosts> GivenStages(
    const google::protobuf::RepeatedPtrField<GivenCosts::Stage>& all,
    int num_stages) {
  std::vector<StageCosts> stages;
  for (int s = 0; s < num_stages; ++s) {
    const auto& given = all[all.size() == 1 ? 0 : s];
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
    stages.push_back(stage);
  }
  return stages;
}

}  // namespace

Costs GivenCostsOf(const Scenario& scenario, int num_stages) {
  Costs costs;
  const GivenCosts& all = scenario.costs();
  const auto data = static_cast<int>(scenario.parallelism().data());
  if (data <= 1) {
    costs.stages = GivenStages(all.stages(), num_stages);
    return costs;
  }
  // Each replica is a device of its own.
  const auto pipeline = static_cast<int>(scenario.parallelism().pipeline());
  for (int replica = 0; replica < data; ++replica) {
    std::vector<StageCosts> stages =
        GivenStages(all.replicas(replica).stages(), num_stages);
    if (replica == 0) {
      costs.stages = std::move(stages);
    } else {
      costs.other_devices.emplace_back().stages = std::move(stages);
    }
    costs.gpu_device.insert(costs.gpu_device.end(), pipeline, replica);
  }
  return costs;
}

}  // namespace weir::sim
