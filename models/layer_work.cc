// SPDX-License-Identifier: Apache-2.0
#include "models/layer_work.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/problems.h"
#include "models/layer_list.h"
#include "models/parameter_sum.h"

namespace weir::models {
namespace {

// Returns the probability that none of `chosen` experts, which are chosen at
// random without repetition, is one of `own`.
double MissProbability(double experts, double own, double chosen) {
  double missed = 1;
  for (int i = 0; i < chosen; ++i) {
    missed *= std::max(experts - own - i, 0.0) / (experts - i);
  }
  return missed;
}

std::vector<LayerWork> MeasuredLayers(const MeasuredModel& measured,
                                      const WorkSpec& spec) {
  const double scale = static_cast<double>(spec.microbatch_size) /
                       std::max<uint32_t>(measured.microbatch_size(), 1);
  std::vector<LayerWork> layers;
  layers.reserve(measured.layers_size());
  double input_bytes = 0;
  for (const MeasuredLayer& layer : measured.layers()) {
    LayerWork work;
    work.name = layer.name();
    work.role = LayerRole::kMeasured;
    work.forward_seconds = scale * layer.forward_seconds();
    work.backward_seconds = scale * layer.backward_seconds();
    work.recompute_seconds = 0;
    work.parameters = layer.parameter_bytes() / 4;
    work.stash_bytes = scale * layer.activation_bytes();
    work.weight_gradient_stash_bytes = work.stash_bytes;
    if (spec.recompute == RECOMPUTE_FULL) {
      work.recompute_seconds = work.forward_seconds;
      work.recompute_scratch_bytes = work.stash_bytes;
      work.stash_bytes = input_bytes;
    }
    work.output_bytes =
        scale *
        (layer.has_cut_bytes() ? layer.cut_bytes() : layer.activation_bytes());
    input_bytes = work.output_bytes;
    layers.push_back(work);
  }
  return layers;
}

// `Layers` is a vector or a LayerList.
template <typename Layers>
double ModelFlopsOf(const Layers& layers) {
  double flops = 0;
  for (const LayerWork& layer : layers) {
    for (const auto* kernels :
         {&layer.forward, &layer.backward_input, &layer.backward_weight}) {
      for (const Kernel& kernel : *kernels) flops += kernel.flops;
    }
  }
  return flops;
}

template <typename Layers>
double ForwardFlopsOf(const Layers& layers) {
  double flops = 0;
  for (const LayerWork& layer : layers) {
    for (const Kernel& kernel : layer.forward) flops += kernel.flops;
  }
  return flops;
}

template <typename Layers>
double ExpertParametersOf(const Layers& layers, int first, int last) {
  double parameters = 0;
  for (int i = first; i < last; ++i) parameters += layers[i].expert_parameters;
  return parameters;
}

double SumOver(const LayerList& layers, int first, int last,
               double LayerWork::*field) {
  double sum = 0;
  for (int i = first; i < last; ++i) sum += layers[i].*field;
  return sum;
}

template <typename Layers>
double QuantizedParametersOf(const Layers& layers, int first, int last) {
  double parameters = 0;
  for (int i = first; i < last; ++i)
    parameters += layers[i].quantized_parameters;
  return parameters;
}

template <typename Layers>
double ParametersOf(const Layers& layers, int first, int last) {
  ParameterSum sum;
  for (int i = first; i < last; ++i) sum.Add(layers[i]);
  return sum.parameters();
}

}  // namespace

const char* Name(KernelPart part) {
  switch (part) {
    case KernelPart::kAttentionGemm:
      return "attention_gemm";
    case KernelPart::kProjectionGemm:
      return "projection_gemm";
    case KernelPart::kFeedForwardGemm:
      return "feed_forward_gemm";
    case KernelPart::kVocabularyGemm:
      return "vocabulary_gemm";
    case KernelPart::kAttentionCore:
      return "attention_core";
    case KernelPart::kNorm:
      return "norm";
    case KernelPart::kElementwise:
      return "elementwise";
    case KernelPart::kSoftmax:
      return "softmax";
    case KernelPart::kLoss:
      return "loss";
    case KernelPart::kEmbedding:
      return "embedding";
    case KernelPart::kOptimizer:
      return "optimizer";
    case KernelPart::kRouter:
      return "router";
    case KernelPart::kPermute:
      return "permute";
    case KernelPart::kRecurrence:
      return "recurrence";
    case KernelPart::kCast:
      return "cast";
  }
  return "elementwise";
}

const char* Name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
    case CollectiveKind::kSendReceive:
      return "send_receive";
  }
  return "all_reduce";
}

bool SendsOneCopyPerGpu(TokenDispatcher dispatcher) {
  return dispatcher == TOKENS_DEEPEP || dispatcher == TOKENS_HYBRID_EP;
}

double GroupsReached(double experts, double experts_per_token,
                     double num_groups) {
  const double own = experts / num_groups;
  return num_groups * (1 - MissProbability(experts, own, experts_per_token));
}

double GroupsReached(double experts, double experts_per_token,
                     double num_groups, int router_groups,
                     int groups_per_token) {
  if (groups_per_token == router_groups) {
    return GroupsReached(experts, experts_per_token, num_groups);
  }
  const double width = experts / router_groups;
  const double own = experts / num_groups;
  const bool alike = std::fmod(num_groups, router_groups) == 0 ||
                     std::fmod(router_groups, num_groups) == 0;
  const double num_different = alike ? 1 : num_groups;
  double reached = 0;
  for (int group = 0; group < num_different; ++group) {
    // Subsets of the router's groups by their number of groups and by how many
    // experts of this group they have.
    std::map<std::pair<int, double>, double> subsets = {{{0, 0.0}, 1.0}};
    for (int r = 0; r < router_groups; ++r) {
      const double shared =
          std::max(std::min((group + 1) * own, (r + 1) * width) -
                       std::max(group * own, r * width),
                   0.0);
      std::map<std::pair<int, double>, double> next = subsets;  // without r
      for (const auto& [key, count] : subsets) {
        if (key.first == groups_per_token) continue;
        next[{key.first + 1, key.second + shared}] += count;
      }
      subsets = std::move(next);
    }
    double all = 0, missed = 0;
    for (const auto& [key, count] : subsets) {
      if (key.first < groups_per_token) continue;
      all += count;
      missed += count * MissProbability(groups_per_token * width, key.second,
                                        experts_per_token);
    }
    reached += 1 - missed / all;
  }
  return reached * num_groups / num_different;
}

double GroupsReached(const TokenRouting& routing, double num_groups) {
  return GroupsReached(routing.experts, routing.experts_per_token, num_groups,
                       routing.router_groups, routing.groups_per_token);
}

const char* Name(LayerCollective::Group group) {
  switch (group) {
    case LayerCollective::Group::kExpert:
      return "expert";
    case LayerCollective::Group::kContext:
      return "context";
    case LayerCollective::Group::kExpertTensor:
      return "expert_tensor";
    case LayerCollective::Group::kTensor:
      break;
  }
  return "tensor";
}

std::vector<LayerWork> LayersOf(const Model& model, const WorkSpec& spec) {
  if (model.has_measured()) return MeasuredLayers(model.measured(), spec);
  const LayerList list = ListLayers(model, spec);
  std::vector<LayerWork> layers;
  layers.reserve(list.size());
  for (const LayerWork& layer : list) layers.push_back(layer);
  return layers;
}

double ModelFlops(const std::vector<LayerWork>& layers, int tensor_parallel) {
  return ModelFlopsOf(layers) * tensor_parallel;
}

double ModelFlops(const LayerList& layers, int tensor_parallel) {
  return ModelFlopsOf(layers) * tensor_parallel;
}

double ForwardFlops(const std::vector<LayerWork>& layers, int tensor_parallel) {
  return ForwardFlopsOf(layers) * tensor_parallel;
}

double ForwardFlops(const LayerList& layers, int tensor_parallel) {
  return ForwardFlopsOf(layers) * tensor_parallel;
}

double StageExpertParameters(const std::vector<LayerWork>& layers, int first,
                             int last) {
  return ExpertParametersOf(layers, first, last);
}

double StageExpertParameters(const LayerList& layers, int first, int last) {
  return ExpertParametersOf(layers, first, last);
}

double StageAdapterParameters(const LayerList& layers, int first, int last) {
  return SumOver(layers, first, last, &LayerWork::adapter_parameters);
}

double StageExpertAdapterParameters(const LayerList& layers, int first,
                                    int last) {
  return SumOver(layers, first, last, &LayerWork::expert_adapter_parameters);
}

double StageQuantizedParameters(const std::vector<LayerWork>& layers, int first,
                                int last) {
  return QuantizedParametersOf(layers, first, last);
}

double StageQuantizedParameters(const LayerList& layers, int first, int last) {
  return QuantizedParametersOf(layers, first, last);
}

double StageParameters(const std::vector<LayerWork>& layers, int first,
                       int last) {
  return ParametersOf(layers, first, last);
}

double StageParameters(const LayerList& layers, int first, int last) {
  return ParametersOf(layers, first, last);
}

std::optional<KernelPart> KernelPartOf(absl::string_view name) {
  for (int i = 0; i < kNumKernelParts; ++i) {
    const auto part = static_cast<KernelPart>(i);
    if (name == Name(part)) return part;
  }
  return {};
}

}  // namespace weir::models
