// SPDX-License-Identifier: Apache-2.0
#include "sim/count_flops.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/block_spec.h"
#include "models/layer_list.h"
#include "models/layer_work.h"
#include "models/recompute_work.h"
#include "models/vocabulary_shards.h"
#include "results/flops.h"
#include "scenarios/stage_cut.h"
#include "sim/costs/work_spec.h"

namespace weir::sim {
namespace {

bool IsAttention(const models::Kernel& kernel) {
  return kernel.flops > 0 &&
         (kernel.part == models::KernelPart::kAttentionCore ||
          kernel.part == models::KernelPart::kAttentionGemm);
}

// Returns the part of an attention kernel's FLOP that a causal mask keeps:
// fused kernels perform only that. A backward also computes the scores again.
// Kernels that every GPU of a tensor-parallel group repeats count in full.
double KeptPart(const models::Kernel& kernel) {
  constexpr double kUnfused = 0.5;
  if (kernel.kind != models::Kernel::Kind::kAttention) return kUnfused;
  const double gemms = kernel.num_gemms > 2 ? 4 : kernel.num_gemms;
  return std::min(
      kernel.performed_flops / kernel.num_gemms * gemms / kernel.flops, 1.0);
}

// FLOP of a microbatch on one GPU.
struct KernelFlops {
  // `kept`: attention with KeptPart.
  double model = 0, attention = 0, kept = 0, executed = 0;

  void Add(const std::vector<models::Kernel>& kernels, bool needed) {
    for (const models::Kernel& kernel : kernels) {
      executed +=
          kernel.performed_flops > 0 ? kernel.performed_flops : kernel.flops;
      if (!needed) continue;
      model += kernel.flops;
      if (!IsAttention(kernel)) continue;
      attention += kernel.flops;
      kept += KeptPart(kernel) * kernel.flops;
    }
  }
};

KernelFlops FlopsOfLayers(const models::LayerList& layers, bool forward_only) {
  KernelFlops flops;
  for (const models::LayerWork& layer : layers) {
    flops.Add(layer.forward, /*needed=*/true);
    if (forward_only) continue;
    flops.Add(layer.backward_input, /*needed=*/true);
    flops.Add(layer.backward_weight, /*needed=*/true);
    flops.Add(layer.recompute, /*needed=*/false);
  }
  return flops;
}

// Returns the parameters outside the input embedding (whose copy in the output
// layer counts), with only as many experts as a token uses.
double UsedParameters(const scenarios::ResolvedScenario& scenario,
                      models::WorkSpec spec) {
  spec.tensor_parallel = 1;
  spec.expert_parallel = 1;
  spec.expert_tensor_parallel = 1;
  const Transformer& transformer = scenario.model.transformer();
  const double unused = transformer.num_experts() > 0
                            ? 1 - 1.0 * transformer.experts_per_token() /
                                      transformer.num_experts()
                            : 0;
  double parameters = 0;
  for (const models::LayerWork& layer :
       models::ListLayers(scenario.model, spec)) {
    if (layer.role == models::LayerRole::kEmbedding) continue;
    parameters += layer.parameters - unused * layer.expert_parameters;
    if (layer.role == models::LayerRole::kMtp)
      parameters -= layer.shared_parameters;
  }
  return parameters;
}

}  // namespace

FlopCounts CountFlops(const scenarios::ResolvedScenario& scenario,
                      bool forward_only, int num_stages) {
  FlopCounts counts;
  if (scenario.given_costs || !scenario.model.has_transformer()) return counts;
  const Transformer& transformer = scenario.model.transformer();
  models::WorkSpec spec = MakeWorkSpec(scenario);
  spec.documents.imbalance = 1;  // the mean of all microbatches
  const Batch& batch = scenario.scenario.batch();
  const double s = batch.sequence_length();
  const double window = transformer.sliding_window();
  const double reach = window > 0 ? std::min(s, window) : s;
  // The part of the scores that a causal mask keeps.
  const double kept = transformer.causal() ? 1 - reach / (2 * s) : 1;

  models::LayerList layers = models::ListLayers(scenario.model, spec);
  auto partition = scenarios::CutIntoStages(scenario, layers, num_stages);
  if (partition.ok()) {
    layers =
        models::RecomputeStages(std::move(layers), *partition, spec.recompute);
    models::ShardVocabulary(transformer, spec, &layers, &*partition);
  }
  const KernelFlops of_gpu = FlopsOfLayers(layers, forward_only);
  const double gpus = 1.0 * scenario.num_microbatches *
                      scenario.placement.data * spec.tensor_parallel;
  counts.set_model(gpus * of_gpu.model);
  counts.set_model_causal(gpus *
                          (of_gpu.model - (1 - kept) * of_gpu.attention));
  counts.set_hardware(gpus * of_gpu.executed);

  const double sequences = batch.global_batch_size();
  const bool recomputed = spec.recompute == RECOMPUTE_FULL;
  counts.set_megatron(results::MegatronFlops(
      sequences, s, transformer.num_layers(), transformer.hidden_size(),
      transformer.vocabulary_size(),
      forward_only ? 1
      : recomputed ? 4
                   : 3));

  const double passes = forward_only ? 1 : 3;
  const double dense = 2 * passes * UsedParameters(scenario, spec);
  double attention = 4 * passes * transformer.num_layers() *
                     transformer.num_heads() * transformer.head_size() * reach;
  double kept_attention = kept * attention;
  if (!models::SpecialFields(transformer).empty() ||
      spec.documents.length > 0) {
    // The formula counts heads of equal blocks, and whole sequences.
    const double tokens = sequences * s;
    attention = gpus * of_gpu.attention / tokens;
    kept_attention = gpus * of_gpu.kept / tokens;
    counts.set_model_causal(gpus *
                            (of_gpu.model - of_gpu.attention + of_gpu.kept));
  }
  counts.set_palm(sequences * s * (dense + attention));
  counts.set_palm_causal(sequences * s * (dense + kept_attention));
  return counts;
}

}  // namespace weir::sim
