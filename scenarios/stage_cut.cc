// SPDX-License-Identifier: Apache-2.0
#include "scenarios/stage_cut.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/layout.h"

namespace weir {
namespace {

absl::StatusOr<Partition> Cut(const Parallelism& parallelism,
                              const LayerList& layers, int num_stages) {
  if (!parallelism.layout().empty()) {
    ASSIGN_OR_RETURN(const StageLayout layout,
                     ParseLayout("layout", parallelism.layout()));
    return PartitionByLayout(layers, layout);
  }
  const auto& given = parallelism.blocks_per_stage();
  if (!given.empty()) {
    if (given.size() != num_stages) {
      return absl::InvalidArgumentError(
          absl::StrCat("blocks_per_stage has ", given.size(),
                       " entries, expected one per stage (", num_stages, ")"));
    }
    return PartitionAsGiven(layers, {given.begin(), given.end()});
  }
  if (layers.front().role != LayerRole::kMeasured) {
    return PartitionEvenly(layers, num_stages);
  }
  std::vector<double> seconds;
  for (const LayerWork& layer : layers) {
    seconds.push_back(*layer.forward_seconds + *layer.backward_seconds);
  }
  return PartitionBalanced(seconds, num_stages);
}

}  // namespace

absl::StatusOr<Partition> CutIntoStages(const ResolvedScenario& resolved,
                                        const LayerList& layers,
                                        int num_stages) {
  absl::StatusOr<Partition> partition =
      Cut(resolved.scenario.parallelism(), layers, num_stages);
  if (!partition.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        resolved.label, ": parallelism ", partition.status().message()));
  }
  return partition;
}

}  // namespace weir
