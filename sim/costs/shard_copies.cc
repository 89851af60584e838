// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/shard_copies.h"

#include <vector>

namespace weir::sim {

void AddShardCopies(const DeviceProfile& device,
                    const calibrate::KernelPrices& prices,
                    const ShardCalls& calls, StageCosts* stage) {
  if (!stage->kernels.has_value()) return;  // measured with its copies
  const auto add = [&](double bytes, std::vector<PricedKernel>* to) {
    models::Kernel copy;
    copy.part = models::KernelPart::kElementwise;
    copy.launches = stage->parameters.num_layers;
    copy.bytes = bytes;
    const double seconds = prices.Price(device, 1, copy).seconds;
    to->push_back({copy, 1, seconds});
    return seconds;
  };
  const StageParameters& all = stage->parameters;
  stage->seconds.forward +=
      add(2 * all.gathered_bytes(), &stage->kernels->forward);
  stage->seconds.backward_parts->input +=
      add(2 * all.gathered_bytes() * calls.backward.bytes,
          &stage->kernels->backward_input);
  stage->seconds.backward_parts->weight +=
      add(all.gathered_bytes() + all.gradient_bytes,
          &stage->kernels->backward_weight);
  stage->launches.forward.forward_launches += all.num_layers;
  stage->launches.backward_input.backward_launches += all.num_layers;
  stage->launches.backward_weight.backward_launches += all.num_layers;
}

void AddListSeconds(const ShardCalls& calls, StageCosts* stage) {
  const auto seconds = [&](const PassGathers& pass) {
    return stage->parameters.num_layers * (pass.calls - pass.exposed_calls) *
           calls.list_seconds;
  };
  stage->seconds.forward += seconds(calls.forward);
  if (stage->seconds.backward_parts.has_value()) {
    stage->seconds.backward_parts->input += seconds(calls.backward);
  } else {
    stage->seconds.backward += seconds(calls.backward);
  }
}

}  // namespace weir::sim
