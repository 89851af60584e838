// SPDX-License-Identifier: Apache-2.0
#include "scenarios/stage_cut.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/layout.h"

namespace weir::scenarios {
namespace {

absl::StatusOr<models::Partition> Cut(const Parallelism& parallelism,
                                      const models::LayerList& layers,
                                      int num_stages) {
  if (!parallelism.layout().empty()) {
    ASSIGN_OR_RETURN(const models::StageLayout layout,
                     models::ParseLayout("layout", parallelism.layout()));
    return models::PartitionByLayout(layers, layout);
  }
  const auto& given = parallelism.blocks_per_stage();
  if (!given.empty()) {
    if (given.size() != num_stages) {
      return absl::InvalidArgumentError(
          absl::StrCat("blocks_per_stage has ", given.size(),
                       " entries, expected one per stage (", num_stages, ")"));
    }
    return models::PartitionAsGiven(layers, {given.begin(), given.end()});
  }
  if (layers.front().role != models::LayerRole::kMeasured) {
    return models::PartitionEvenly(layers, num_stages);
  }
  std::vector<double> seconds;
  for (const models::LayerWork& layer : layers) {
    seconds.push_back(*layer.forward_seconds + *layer.backward_seconds);
  }
  return models::PartitionBalanced(seconds, num_stages);
}

}  // namespace

absl::StatusOr<models::Partition> CutIntoStages(
    const ResolvedScenario& resolved, const models::LayerList& layers,
    int num_stages) {
  absl::StatusOr<models::Partition> partition =
      Cut(resolved.scenario.parallelism(), layers, num_stages);
  if (!partition.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        resolved.label, ": parallelism ", partition.status().message()));
  }
  return partition;
}

}  // namespace weir::scenarios
