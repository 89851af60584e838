// SPDX-License-Identifier: Apache-2.0
// Cuts of a model's layers into stages that are worth looking at.
#ifndef WEIR_PLAN_CUTS_H_
#define WEIR_PLAN_CUTS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/space.h"
#include "scenarios/scenario.h"

namespace weir {

// One microbatch, on one GPU of its tensor group: [layer], the embedding and
// the head among them where the model has them.
struct LayerPrice {
  std::vector<double> seconds;      // forward and backward
  std::vector<double> state_bytes;  // weights, gradients, optimizer's states
  // What recomputation changes besides seconds, of stages of one block each:
  // host seconds and bytes of every kind.
  std::vector<double> recomputed = {};
  bool has_ends = false;  // the first is no block, nor the last

  int num_blocks() const {
    return static_cast<int>(seconds.size()) - (has_ends ? 2 : 0);
  }
  bool operator==(const LayerPrice&) const = default;
};

// Of the scenario's tensor parallelism, microbatch size and recomputation.
absl::StatusOr<LayerPrice> PriceLayers(const ResolvedScenario& scenario);

// Blocks of each stage:
//   even          the same number (of a measured model: balanced by seconds)
//   ends lighter  one block less where the embedding is, or the head, or both:
//                 the largest of these whose rest is even (Megatron-LM's
//                 account-for-embedding and account-for-loss)
//   balanced      the least largest stage in seconds, and of such cuts the one
//                 whose stages are most alike; exact
//   light         the same in bytes of weights and states
// Nothing where there is no such cut, or where one that stands before it is the
// same.
std::optional<std::vector<int>> CutBlocks(const LayerPrice& layers,
                                          int num_stages, Cut cut);

}  // namespace weir

#endif  // WEIR_PLAN_CUTS_H_
