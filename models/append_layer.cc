// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "models/collectives.h"
#include "models/transformer_layers.h"

namespace weir::models {
namespace {

void Append(const std::vector<Kernel>& kernels, std::vector<Kernel>* all) {
  all->insert(all->end(), kernels.begin(), kernels.end());
}

void AppendOnce(const LayerWork& layer, LayerWork* work) {
  Append(layer.forward, &work->forward);
  Append(layer.backward_input, &work->backward_input);
  Append(layer.backward_weight, &work->backward_weight);
  Append(layer.recompute, &work->recompute);
  for (const LayerCollective& collective : layer.forward_collectives) {
    AddCollective(collective, &work->forward_collectives);
  }
  for (auto at = layer.backward_collectives.rbegin();
       at != layer.backward_collectives.rend(); ++at) {
    AddFrontCollective(*at, &work->backward_collectives);
  }
  work->parameters += layer.parameters;
  work->expert_parameters += layer.expert_parameters;
  work->quantized_parameters += layer.quantized_parameters;
  work->adapter_parameters += layer.adapter_parameters;
  work->expert_adapter_parameters += layer.expert_adapter_parameters;
  work->matrices.insert(work->matrices.end(), layer.matrices.begin(),
                        layer.matrices.end());
  work->stash_bytes += layer.stash_bytes;
  work->weight_gradient_stash_bytes += layer.weight_gradient_stash_bytes;
  work->backward_kept_bytes += layer.backward_kept_bytes;
}

}  // namespace

void AppendLayer(const LayerWork& layer, int times, LayerWork* work) {
  for (int i = 0; i < times; ++i) AppendOnce(layer, work);
  // Only one of the layers runs at a time.
  work->recompute_scratch_bytes =
      std::max(work->recompute_scratch_bytes, layer.recompute_scratch_bytes);
  work->forward_scratch_bytes =
      std::max(work->forward_scratch_bytes, layer.forward_scratch_bytes);
  work->backward_scratch_bytes =
      std::max(work->backward_scratch_bytes, layer.backward_scratch_bytes);
}

}  // namespace weir::models
