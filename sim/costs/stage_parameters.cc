// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/stage_parameters.h"

#include <algorithm>
#include <vector>

#include "models/parameter_sum.h"
#include "models/recipe.h"
#include "sim/costs/muon.h"

namespace weir::sim {
namespace {

// Sets the bytes of layers for sharded weights. A copy of a tied embedding is
// gathered with the embedding. `gathers_experts`: several ranks shard each
// expert.
void SetLayers(const models::LayerList& layers, int first, int last,
               const ParameterBytes& bytes, bool gathers_experts,
               StageCosts* stage) {
  std::vector<double> weights, experts;
  models::ParameterSum sum;
  double before = 0;
  for (int l = first; l < last; ++l) {
    sum.Add(layers[l]);
    const double own = sum.parameters() - before;
    before = sum.parameters();
    if (own > 0) {
      const double of_experts = layers[l].expert_parameters;
      weights.push_back(
          (gathers_experts ? own : own - of_experts) * bytes.weight +
          layers[l].quantized_parameters * (bytes.gathered - bytes.weight));
      experts.push_back(gathers_experts ? of_experts * bytes.weight : 0);
      stage->parameters.gathered_expert_bytes += experts.back();
    }
  }
  if (weights.empty()) return;
  stage->parameters.num_layers = static_cast<int>(weights.size());
  LayerBytes& sizes = stage->parameters.layers.emplace();
  sizes.first = weights.front();
  sizes.last = weights.back();
  sizes.first_experts = experts.front();
  sizes.last_experts = experts.back();
  sizes.two = weights.front();
  for (size_t i = 1; i < weights.size(); ++i) {
    sizes.two = std::max(sizes.two, weights[i - 1] + weights[i]);
  }
}

// Numbers of parameters of a stage.
struct ParameterSums {
  bool adapts;  // only adapters are trained
  double all;
  double quantized;  // read by GEMMs in a format of the recipe
  double trained;
  double experts;  // trained, of experts
};

ParameterSums SumsOf(const models::LayerList& layers, int first, int last,
                     const Training& training) {
  const double all = models::StageParameters(layers, first, last);
  const bool adapts = training.lora().rank() > 0;
  return {
      .adapts = adapts,
      .all = all,
      .quantized = models::StageQuantizedParameters(layers, first, last),
      .trained =
          adapts ? models::StageAdapterParameters(layers, first, last) : all,
      .experts = adapts
                     ? models::StageExpertAdapterParameters(layers, first, last)
                     : models::StageExpertParameters(layers, first, last)};
}

}  // namespace

double GradientBytes(const Training& training) {
  return training.precision() != FP32 && !training.fp32_gradients() ? 2 : 4;
}

ParameterBytes BytesPerParameter(const Training& training, const Recipe& recipe,
                                 const models::Quantization& formats) {
  const bool mixed = training.precision() != FP32;
  ParameterBytes bytes;
  bytes.weight = mixed ? 2 : 4;
  bytes.gradient = GradientBytes(training);
  double states = models::StateBytes(recipe.first_moment());
  const double main = mixed ? models::StateBytes(recipe.main_weights()) : 0;
  // Muon has one state, and Adam's two for what is not a matrix of a block.
  bytes.matrix_optimizer = states + main;
  if (training.optimizer() != SGD_MOMENTUM)
    states += models::StateBytes(recipe.second_moment());
  bytes.optimizer = states + main;
  if (!UsesMuon(training)) bytes.matrix_optimizer = bytes.optimizer;
  bytes.stash = training.stash_bytes_per_parameter() > 0
                    ? training.stash_bytes_per_parameter()
                    : 4;
  const double copies = models::WeightCopyBytes(formats);
  const double first =
      models::OperandBytes(formats.forward, models::Operand::kWeight);
  bytes.quantized = bytes.gathered = bytes.weight;
  bytes.copies = formats.casts_weights_each_pass ? 0 : copies;
  bytes.cast =
      formats.casts_weights_each_pass ? 0 : models::WeightCastBytes(formats);
  if (!recipe.quantized_parameters() || first == 0) return bytes;
  if (recipe.gathers_parameters()) bytes.gathered = first;
  if (formats.casts_weights_each_pass) return bytes;  // shards have 16 bits
  // Stores the weight in the forward operand format. The other copy is cast
  // from it, or from the gathered weight.
  bytes.quantized = first;
  bytes.copies = copies - first;
  bytes.cast = recipe.gathers_parameters()
                   ? (copies > first ? first + bytes.copies : 0)
                   : bytes.weight + copies;
  return bytes;
}

void SetKeptBytes(const models::LayerList& layers, int first, int last,
                  const Training& training, const ParameterBytes& bytes,
                  StageParameters* parameters) {
  const auto [adapts, all, quantized, trained, experts] =
      SumsOf(layers, first, last, training);
  parameters->weight_bytes =
      all * bytes.weight + quantized * (bytes.quantized - bytes.weight);
  parameters->weight_copy_bytes = quantized * bytes.copies;
  parameters->gradient_bytes = trained * bytes.gradient;
  parameters->expert_gradient_bytes = experts * bytes.gradient;
  const double matrices =
      UsesMuon(training) ? MatrixParameters(layers, first, last) : 0;
  parameters->optimizer_state_bytes = (trained - matrices) * bytes.optimizer +
                                      matrices * bytes.matrix_optimizer;
}

void SetParameters(const models::LayerList& layers, int first, int last,
                   const Training& training, const ParameterBytes& bytes,
                   bool gathers_experts, StageCosts* stage) {
  const auto [adapts, all, quantized, trained, experts] =
      SumsOf(layers, first, last, training);
  StageParameters& parameters = stage->parameters;
  SetKeptBytes(layers, first, last, training, bytes, &parameters);
  parameters.gather_bytes =
      all * bytes.weight + quantized * (bytes.gathered - bytes.weight);
  if (adapts) {
    parameters.trained_bytes = trained * bytes.weight;
    // Only a pass needs the frozen weights of other ranks.
    if (!training.fully_sharded()) {
      parameters.gather_bytes = parameters.trained_bytes;
    }
  }
  parameters.cast_bytes = adapts ? 0 : quantized * bytes.cast;
  parameters.stash_bytes = trained * bytes.stash;
  parameters.fp32_bytes = trained * 4;
  SetLayers(layers, first, last, bytes, gathers_experts, stage);
  if (!gathers_experts) {
    const bool of_adapters = adapts && !training.fully_sharded();
    *parameters.gather_bytes -=
        bytes.weight *
        (of_adapters ? experts
                     : models::StageExpertParameters(layers, first, last));
  }
}

}  // namespace weir::sim
