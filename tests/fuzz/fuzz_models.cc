// SPDX-License-Identifier: Apache-2.0
// Models as Hugging Face configs, profile graphs and textprotos. A valid model
// is parsed from its text form to the same value, splits into layers of finite,
// non-negative work that add up to its parameters, and can be partitioned into
// stages.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/textproto.h"
#include "models/describe.h"
#include "models/layer_work.h"
#include "models/model.h"
#include "models/partition.h"
#include "tests/fuzz/generate_model.h"
#include "tests/fuzz/target.h"

namespace weir::fuzz {
namespace {

void CheckAmount(double amount) {
  REQUIRE_THAT(std::isfinite(amount) && amount >= 0, std::to_string(amount));
}

void CheckLayer(const models::LayerWork& layer) {
  for (const double amount :
       {layer.parameters, layer.expert_parameters, layer.shared_parameters,
        layer.output_bytes, layer.stash_bytes, layer.recompute_scratch_bytes,
        layer.forward_scratch_bytes, layer.backward_scratch_bytes,
        layer.weight_gradient_stash_bytes, layer.backward_kept_bytes}) {
    CheckAmount(amount);
  }
  REQUIRE(layer.expert_parameters <= layer.parameters);
  for (const auto* kernels : {&layer.forward, &layer.backward_input,
                              &layer.backward_weight, &layer.recompute}) {
    for (const models::Kernel& kernel : *kernels) {
      CheckAmount(kernel.flops);
      CheckAmount(kernel.performed_flops);
      CheckAmount(kernel.bytes);
    }
  }
  for (const auto* collectives :
       {&layer.forward_collectives, &layer.backward_collectives}) {
    for (const models::LayerCollective& collective : *collectives) {
      CheckAmount(collective.bytes);
      REQUIRE(collective.count >= 1);
    }
  }
}

void CheckStages(const std::vector<models::LayerWork>& layers,
                 Choices* choices) {
  std::vector<double> seconds;
  double total = 0;
  for (const models::LayerWork& layer : layers) {
    seconds.push_back(1e-12 * layer.parameters);
    total += layer.parameters - layer.shared_parameters;
  }
  const double whole =
      models::StageParameters(layers, 0, static_cast<int>(layers.size()));
  REQUIRE(std::fabs(whole - total) <= 1e-9 * total);
  const int num_stages = choices->Int(1, 8);
  const auto partition = models::PartitionBalanced(seconds, num_stages);
  REQUIRE(partition.ok() == (num_stages <= std::ssize(layers)));
  if (!partition.ok()) return;
  REQUIRE(std::ssize(partition->first) == num_stages + 1);
  for (int s = 0; s < num_stages; ++s) {
    REQUIRE(partition->first[s] < partition->first[s + 1]);
  }
}

void Use(const Model& model, Choices* choices) {
  CheckAmount(models::CountParameters(model));
  const std::string text = PrintTextProto(model);
  const auto again = models::ParseModel("again", text);
  REQUIRE_OK(again);
  REQUIRE_THAT(PrintTextProto(*again) == text, text);
  const models::WorkSpec spec = GenerateWorkSpec(model, choices);
  if (!models::ValidateWorkSpec("fuzz", model, spec).ok()) return;
  const std::vector<models::LayerWork> layers = models::LayersOf(model, spec);
  for (const models::LayerWork& layer : layers) CheckLayer(layer);
  CheckAmount(models::ModelFlops(layers, spec.tensor_parallel));
  CheckStages(layers, choices);
  REQUIRE(!models::DescribeModel(model, spec).empty());
  REQUIRE(nlohmann::json::accept(models::ModelJson(model, spec)));
}

}  // namespace

bool RunInput(Choices* choices) {
  std::string text;
  switch (choices->Int(0, 3)) {
    case 0:
      text = PrintTextProto(GenerateModel(choices));
      break;
    case 1:
      text = GenerateProfileGraph(choices);
      break;
    default:
      text = GenerateHuggingFaceConfig(choices);
      break;
  }
  if (choices->OneIn(12)) text = Damage(std::move(text), choices);
  const auto model = models::ParseModel("fuzz", text);
  if (!model.ok()) {
    REQUIRE(!model.status().message().empty());
    return false;
  }
  const bool small = model->transformer().num_layers() <= 200 &&
                     model->measured().layers_size() <= 200;
  if (small) Use(*model, choices);
  return true;
}

}  // namespace weir::fuzz
