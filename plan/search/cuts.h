// SPDX-License-Identifier: Apache-2.0
// Candidate cuts of a model's layers into stages.
#ifndef WEIR_PLAN_SEARCH_CUTS_H_
#define WEIR_PLAN_SEARCH_CUTS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/search/space.h"
#include "scenarios/scenario.h"

namespace weir::plan {

// Costs of one microbatch on one GPU of its tensor group, by layer. The
// embedding and the head count as layers where the model has them.
struct LayerPrice {
  std::vector<double> seconds;      // forward and backward
  std::vector<double> state_bytes;  // weights, gradients, optimizer states
  // Further costs that recomputation may change, of stages of one block each:
  // seconds by pass, host seconds, bytes of every kind, numbers of collectives.
  std::vector<double> recomputed = {};
  bool has_ends = false;  // the first and the last layer are not blocks
  // The part of the last layer that belongs to MTP modules, see CutBlocks.
  double mtp_seconds = 0;

  int num_blocks() const {
    return static_cast<int>(seconds.size()) - (has_ends ? 2 : 0);
  }
  bool operator==(const LayerPrice&) const = default;
};

// Prices layers for the scenario's tensor parallelism, microbatch size and
// recomputation. Returns the errors of sim::ComputeCosts.
absl::StatusOr<LayerPrice> PriceLayers(
    const scenarios::ResolvedScenario& scenario);

// Returns the number of blocks of each stage:
//   even          the same number (of a measured model: balanced by seconds)
//   ends lighter  one block less in the stage of the embedding, of the head, or
//                 of both: the largest such set for which the rest is even
//                 (Megatron-LM's account-for-embedding and account-for-loss)
//   balanced      the cut with the smallest maximum of stage times, and among
//                 those the one with the most similar stages; exact
//   light         as balanced, in bytes of weights and optimizer states
//   speeds        as balanced, for stages on GPUs of different speeds
//   MTP apart     the head in the last stage, without blocks, the MTP modules
//   in
//                 the one before; otherwise balanced
// Returns std::nullopt if the cut does not exist or equals one listed before
// it. `speeds`: of the slowest GPU of each stage, relative to the others; only
// for the cut by speeds, for which there must be one per stage.
std::optional<std::vector<int>> CutBlocks(
    const LayerPrice& layers, int num_stages, Cut cut,
    const std::vector<double>& speeds = {});

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_CUTS_H_
