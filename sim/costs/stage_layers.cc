// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/stage_layers.h"

#include <algorithm>
#include <utility>

#include "models/collectives.h"

namespace weir::sim {
namespace {

void AddKernel(const PricedKernel& kernel, double count,
               std::vector<PricedKernel>* to) {
  auto at = std::find_if(to->begin(), to->end(), [&](const PricedKernel& k) {
    return k.kernel == kernel.kernel;
  });
  if (at == to->end()) {
    at = to->insert(at, {kernel.kernel, 0, kernel.seconds});
  }
  at->count += count * kernel.count;
}

void AddSeconds(const LayerSeconds& seconds, StageCosts* stage) {
  stage->seconds.forward += seconds.forward;
  stage->seconds.backward += seconds.recompute + seconds.backward;
  stage->seconds.ring_forward += seconds.ring_forward;
  stage->seconds.ring_backward += seconds.ring_backward;
  if (!stage->seconds.backward_parts.has_value()) return;
  BackwardParts& parts = *stage->seconds.backward_parts;
  parts.input += seconds.recompute + seconds.backward_input;
  parts.weight += seconds.backward_weight;
}

void AddCollectives(const std::vector<models::LayerCollective>& from,
                    std::vector<models::LayerCollective>* to) {
  for (const models::LayerCollective& collective : from)
    models::AddCollective(collective, to);
}

// Returns the launches of the host: one for each CUDA graph, which replaces
// those of its kernels.
double Launches(const std::vector<models::Kernel>& kernels) {
  double launches = 0;
  bool in_graph = false;
  for (const models::Kernel& kernel : kernels) {
    if (!kernel.in_graph) {
      launches += kernel.launches;
    } else if (!in_graph) {
      ++launches;
    }
    in_graph = kernel.in_graph;
  }
  return launches;
}

// Returns the number of calls of modules.
double Modules(const std::vector<models::Kernel>& kernels) {
  return static_cast<double>(std::count_if(
      kernels.begin(), kernels.end(), [](const models::Kernel& kernel) {
        return kernel.begins_module && !kernel.in_graph;
      }));
}

double Count(const std::vector<models::LayerCollective>& collectives) {
  double count = 0;
  for (const models::LayerCollective& collective : collectives) {
    count += collective.count;
  }
  return count;
}

void AddHostWork(const models::LayerWork& layer, StageCosts* stage) {
  stage->launches.forward.forward_launches += Launches(layer.forward);
  stage->launches.forward.modules += Modules(layer.forward);
  stage->launches.forward.collectives += Count(layer.forward_collectives);
  stage->launches.backward_input.forward_launches += Launches(layer.recompute);
  stage->launches.backward_input.backward_launches +=
      Launches(layer.backward_input);
  stage->launches.backward_input.modules +=
      Modules(layer.recompute) + Modules(layer.backward_input);
  stage->launches.backward_input.collectives +=
      Count(layer.backward_collectives);
  stage->launches.backward_weight.backward_launches +=
      Launches(layer.backward_weight);
}

bool HasRing(const models::LayerWork& layer) {
  return std::any_of(layer.forward_collectives.begin(),
                     layer.forward_collectives.end(), models::IsRing);
}

// `counts`: number of layers per name, which are copies of each other.
void AddKernels(
    const std::vector<std::pair<const models::LayerWork*, int>>& counts,
    LayerPrices* prices, StageCosts* stage) {
  if (!stage->kernels.has_value()) return;
  std::vector<PricedKernel>* to[] = {&stage->kernels->forward,
                                     &stage->kernels->backward_input,
                                     &stage->kernels->backward_weight};
  for (const auto& [layer, count] : counts) {
    const LayerSeconds& seconds = prices->Of(*layer);
    for (int i = 0; i < 3; ++i) {
      for (const PricedKernel& kernel : seconds.kernels[i]) {
        AddKernel(kernel, count, to[i]);
      }
    }
  }
}

void CountLayer(const models::LayerWork& layer,
                std::vector<std::pair<const models::LayerWork*, int>>* counts) {
  const auto at = std::find_if(
      counts->begin(), counts->end(),
      [&](const auto& known) { return known.first->name == layer.name; });
  if (at == counts->end()) {
    counts->push_back({&layer, 1});
  } else {
    ++at->second;
  }
}

// A layer is recomputed right before its own backward, so the largest sum over
// layers counts, not the sum of the largest parts.
void AddBackwardScratch(const models::LayerWork& layer, StageCosts* stage) {
  double& again = stage->activations.recompute_scratch_bytes;
  double& backward = stage->activations.backward_scratch_bytes;
  backward -= layer.stash_bytes - layer.backward_kept_bytes;
  if (again + backward <=
      layer.recompute_scratch_bytes + layer.backward_scratch_bytes) {
    again = layer.recompute_scratch_bytes;
    backward = layer.backward_scratch_bytes;
  } else if (backward < 0) {
    again += std::exchange(backward, 0.0);
  }
}

void AddLayer(const models::LayerWork& layer, StageCosts* stage) {
  AddCollectives(layer.forward_collectives,
                 &stage->communication.forward_collectives);
  AddCollectives(layer.backward_collectives,
                 &stage->communication.backward_collectives);
  stage->communication.output_bytes =
      layer.output_bytes;  // the last layer's remains
  stage->activations.saved_bytes += layer.stash_bytes;
  if (layer.role != models::LayerRole::kBlock &&
      layer.role != models::LayerRole::kMeasured) {
    stage->activations.end_bytes += layer.stash_bytes;
  }
  stage->activations.layer_bytes =
      std::max(stage->activations.layer_bytes, layer.stash_bytes);
  // While an earlier layer runs, this layer's saved activations are not
  // allocated: not yet in the forward, no longer in the backward.
  stage->activations.forward_scratch_bytes =
      std::max(stage->activations.forward_scratch_bytes - layer.stash_bytes,
               layer.forward_scratch_bytes);
  AddBackwardScratch(layer, stage);
  stage->activations.weight_gradient_stash_bytes +=
      layer.weight_gradient_stash_bytes;
}

}  // namespace

const LayerSeconds& LayerPrices::Of(const models::LayerWork& layer) {
  if (layer.forward_seconds.has_value()) {
    measured_ = {.forward = *layer.forward_seconds,
                 .recompute = layer.recompute_seconds.value_or(0),
                 .backward = *layer.backward_seconds,
                 .kernels = {}};
    if (device_.has_relative_speed()) {
      measured_.forward /= device_.relative_speed();
      measured_.recompute /= device_.relative_speed();
      measured_.backward /= device_.relative_speed();
    }
    return measured_;
  }
  const auto [at, is_new] = known_.try_emplace(layer.name);
  if (is_new) {
    LayerSeconds& seconds = at->second;
    seconds.forward = Price(layer.forward, &seconds.kernels[0]);
    seconds.recompute = Price(layer.recompute, &seconds.kernels[1]);
    seconds.backward_input = Price(layer.backward_input, &seconds.kernels[1]);
    seconds.backward_weight = Price(layer.backward_weight, &seconds.kernels[2]);
    if (HasRing(layer)) {
      // A forward sends nothing during the last step, a backward the gradients.
      seconds.ring_forward = AttentionSeconds(layer.forward, false);
      seconds.ring_backward = AttentionSeconds(layer.backward_input, true) +
                              AttentionSeconds(layer.recompute, false);
    }
  }
  return at->second;
}

double LayerPrices::AttentionSeconds(const std::vector<models::Kernel>& kernels,
                                     bool with_last) const {
  double sum = 0, last = 0;
  for (const models::Kernel& kernel : kernels) {
    if (kernel.kind != models::Kernel::Kind::kAttention) continue;
    last = costs_.prices.Price(device_, *costs_.peak_flops, kernel).seconds;
    sum += last;
  }
  return with_last ? sum : sum - last;
}

double LayerPrices::Price(const std::vector<models::Kernel>& kernels,
                          std::vector<PricedKernel>* priced) const {
  double sum = 0;
  for (const models::Kernel& kernel : kernels) {
    const double seconds =
        costs_.prices.Price(device_, *costs_.peak_flops, kernel).seconds;
    AddKernel({kernel, 1, seconds}, 1, priced);
    sum += seconds + GapAfter(seconds, costs_.kernel_gap_seconds);
  }
  return sum;
}

void AddLayers(const models::LayerList& layers, int first, int last,
               LayerPrices* prices, StageCosts* stage) {
  std::vector<std::pair<const models::LayerWork*, int>> counts;
  for (int l = first; l < last; ++l) {
    AddSeconds(prices->Of(layers[l]), stage);
    AddHostWork(layers[l], stage);
    AddLayer(layers[l], stage);
    stage->num_blocks += layers[l].role == models::LayerRole::kBlock ||
                         layers[l].role == models::LayerRole::kMeasured;
    if (layers[l].role != models::LayerRole::kMeasured)
      CountLayer(layers[l], &counts);
  }
  AddKernels(counts, prices, stage);
}

}  // namespace weir::sim
