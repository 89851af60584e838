// SPDX-License-Identifier: Apache-2.0
// The best contiguous cut of a chain of layers under any cost of its stages:
// embedding and loss layers, unequal devices, transfers, memory and replicas
// are the caller's functions.
#ifndef WEIR_MODELS_PARTITION_EXACT_H_
#define WEIR_MODELS_PARTITION_EXACT_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// Layers [first_layer, end_layer) on devices [first_device, end_device), which
// take microbatches in turn.
struct CutStage {
  int first_layer = 0, end_layer = 0;
  int first_device = 0, end_device = 0;

  int num_replicas() const { return end_device - first_device; }
  bool operator==(const CutStage&) const = default;
};

struct CutProblem {
  int num_layers = 0;
  int num_devices = 0;  // in the order of the pipeline, each in one stage
  // Of a stage; 1: one stage per device.
  int max_replicas = 1;
  // Devices at the end of the order may have nothing to do.
  bool may_leave_devices = false;
  // Infinite for what may not be a stage: it does not fit its memory, or has no
  // block. Asked for once per combination and pass, from 0 on.
  std::function<double(const CutStage&)> stage_seconds;
  // Of the cut in front of a stage, which is not the first. Null: 0.
  std::function<double(const CutStage&)> transfer_seconds;
};

struct ExactCut {
  std::vector<CutStage> stages;
  double largest_seconds = 0;  // of all stages and transfers
  double sum_seconds = 0;      // of them together
};

// The least largest_seconds, and of all cuts with that the least sum_seconds,
// of those one that comes first in the order of cuts. Exact dynamic program,
// O(layers^2 x devices x max_replicas) questions. InvalidArgument for counts
// below 1, with `label`; NotFound where no cut is allowed.
absl::StatusOr<ExactCut> CutExactly(absl::string_view label,
                                    const CutProblem& problem);

}  // namespace weir

#endif  // WEIR_MODELS_PARTITION_EXACT_H_
