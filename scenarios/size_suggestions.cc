// SPDX-License-Identifier: Apache-2.0
#include "scenarios/size_suggestions.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "models/model.h"
#include "scenarios/check_scenario.h"

namespace weir::scenarios {
namespace {

// Returns the model without layers if it cannot be loaded: that is reported
// elsewhere.
Transformer TransformerOf(const Scenario& scenario) {
  if (scenario.has_transformer()) return scenario.transformer();
  const auto model = models::LoadModel(scenario.model());
  return model.ok() ? model->transformer() : Transformer();
}

bool DividesLayers(const Parallelism& parallelism, uint64_t pipeline,
                   const Transformer& transformer) {
  const bool even =
      parallelism.layout().empty() && parallelism.blocks_per_stage().empty();
  const auto chunks = static_cast<uint64_t>(Degree(parallelism.chunks()));
  return !even || transformer.num_layers() % (pipeline * chunks) == 0;
}

bool DividesHeads(uint64_t tensor, const Transformer& transformer) {
  Problems problems("");
  CheckTensorDegree(problems, static_cast<uint32_t>(tensor), transformer);
  return problems.empty();
}

// Appends the nearest possible sizes below and above `value`.
void AddNearest(const std::string& field, uint64_t value, uint64_t most,
                const std::function<bool(uint64_t)>& is_possible,
                std::vector<std::string>* nearest) {
  for (uint64_t n = std::min(value - 1, most); n >= 1; --n) {
    if (!is_possible(n)) continue;
    nearest->push_back(absl::StrCat(field, " ", n));
    break;
  }
  for (uint64_t n = value + 1; n <= most; ++n) {
    if (!is_possible(n)) continue;
    nearest->push_back(absl::StrCat(field, " ", n));
    break;
  }
}

}  // namespace

std::vector<std::string> NearestSizes(const Scenario& scenario,
                                      uint64_t num_gpus, uint64_t most_gpus) {
  const Parallelism& parallelism = scenario.parallelism();
  const auto tensor = static_cast<uint64_t>(Degree(parallelism.tensor()));
  const auto pipeline = static_cast<uint64_t>(Degree(parallelism.pipeline()));
  const auto context = static_cast<uint64_t>(Degree(parallelism.context()));
  const Transformer transformer = TransformerOf(scenario);
  std::vector<std::string> nearest;
  const bool heads = DividesHeads(tensor, transformer);
  if (heads) {
    AddNearest(
        "parallelism.pipeline", pipeline, num_gpus,
        [&](uint64_t n) {
          return num_gpus % (tensor * context * n) == 0 &&
                 DividesLayers(parallelism, n, transformer);
        },
        &nearest);
  }
  const bool layers = DividesLayers(parallelism, pipeline, transformer);
  // A pipeline-parallel size is the smaller change.
  if (layers && nearest.empty()) {
    AddNearest(
        "parallelism.tensor", tensor, num_gpus,
        [&](uint64_t n) {
          return num_gpus % (n * context * pipeline) == 0 &&
                 DividesHeads(n, transformer);
        },
        &nearest);
  }
  if (layers && heads && nearest.empty() && context > 1) {
    AddNearest(
        "parallelism.context", context, num_gpus,
        [&](uint64_t n) { return num_gpus % (tensor * pipeline * n) == 0; },
        &nearest);
  }
  if (!layers || !heads) return nearest;
  const uint64_t group = tensor * pipeline * context;
  const uint64_t below = num_gpus / group * group;
  if (below > 0) nearest.push_back(absl::StrCat("--gpus ", below));
  if (below + group <= most_gpus) {
    nearest.push_back(absl::StrCat("--gpus ", below + group));
  }
  return nearest;
}

}  // namespace weir::scenarios
