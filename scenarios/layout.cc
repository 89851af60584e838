// SPDX-License-Identifier: Apache-2.0
// Checks Megatron-LM's layout of layers in a scenario.
#include "models/layout.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scenarios/check_scenario.h"

namespace weir::scenarios {
namespace {

constexpr absl::string_view kField = "parallelism.layout";

}  // namespace

void CheckLayout(Problems& problems, const Parallelism& parallelism) {
  if (parallelism.layout().empty()) return;
  if (!parallelism.blocks_per_stage().empty()) {
    problems.Add(kField, "cannot be combined with blocks_per_stage");
  }
  const auto layout = models::ParseLayout(kField, parallelism.layout());
  if (!layout.ok()) {
    problems.Add("", layout.status().message());
    return;
  }
  const uint64_t num_stages = uint64_t{std::max(parallelism.pipeline(), 1u)} *
                              std::max(parallelism.chunks(), 1u);
  if (layout->size() != num_stages) {
    problems.Add(
        kField,
        absl::StrCat("has ", layout->size(), " stages, expected pipeline ",
                     std::max(parallelism.pipeline(), 1u), " x chunks ",
                     std::max(parallelism.chunks(), 1u), " = ", num_stages));
  }
}

void CheckLayoutAgainst(Problems& problems, const Parallelism& parallelism,
                        int num_blocks, int num_mtp_modules) {
  if (parallelism.layout().empty()) return;
  const auto layout = models::ParseLayout(kField, parallelism.layout());
  if (!layout.ok()) return;  // reported by CheckLayout
  const int given = models::CountBlocks(*layout);
  if (given != num_blocks) {
    problems.Add(kField, absl::StrCat("holds ", given,
                                      " blocks (t), expected "
                                      "the model's ",
                                      num_blocks));
    return;
  }
  std::vector<models::LayerWork> layers(num_blocks + num_mtp_modules + 2);
  layers.front().role = models::LayerRole::kEmbedding;
  layers.front().name = "embedding";
  for (int i = 0; i < num_blocks; ++i) {
    layers[i + 1].name = absl::StrCat("block ", i);
  }
  for (int i = 0; i < num_mtp_modules; ++i) {
    models::LayerWork& layer = layers[num_blocks + 1 + i];
    layer.role = models::LayerRole::kMtp;
    layer.name = absl::StrCat("MTP module ", i);
  }
  layers.back().role = models::LayerRole::kHead;
  layers.back().name = "head";
  const absl::Status fits = models::PartitionByLayout(layers, *layout).status();
  if (!fits.ok()) problems.Add("", absl::StrCat(kField, ": ", fits.message()));
}

}  // namespace weir::scenarios
