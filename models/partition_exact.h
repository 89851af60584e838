// SPDX-License-Identifier: Apache-2.0
// The best contiguous cut of a chain of layers for arbitrary stage costs.
// Embedding and loss layers, unequal devices, transfers, memory and replicas
// are modeled by the caller's functions.
#ifndef WEIR_MODELS_PARTITION_EXACT_H_
#define WEIR_MODELS_PARTITION_EXACT_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::models {

// Layers [first_layer, end_layer) on devices [first_device, end_device), which
// process microbatches in turn.
struct CutStage {
  int first_layer = 0, end_layer = 0;
  int first_device = 0, end_device = 0;

  int num_replicas() const { return end_device - first_device; }
  bool operator==(const CutStage&) const = default;
};

struct CutProblem {
  int num_layers = 0;
  int num_devices = 0;  // in pipeline order, each in one stage
  // Most devices per stage.
  int max_replicas = 1;
  // Whether devices at the end of the order may be unused.
  bool may_leave_devices = false;
  // Seconds of a stage. Infinite for an infeasible stage: it exceeds the memory
  // or has no block. Called once per combination and pass, starting at layer 0.
  std::function<double(const CutStage&)> stage_seconds;
  // Seconds of the transfer before a stage other than the first. Null: 0.
  std::function<double(const CutStage&)> transfer_seconds;
};

struct ExactCut {
  std::vector<CutStage> stages;
  double largest_seconds = 0;  // maximum over stages and transfers
  double sum_seconds = 0;      // sum over stages and transfers
};

// Returns a cut with the smallest largest_seconds, among those with the
// smallest sum_seconds, and among those the first in the order of cuts. Exact
// dynamic program with O(layers^2 x devices x max_replicas) evaluations.
// Returns InvalidArgument, starting with `label`, for counts below 1, and
// NotFound if no cut is feasible.
absl::StatusOr<ExactCut> CutExactly(absl::string_view label,
                                    const CutProblem& problem);

}  // namespace weir::models

#endif  // WEIR_MODELS_PARTITION_EXACT_H_
