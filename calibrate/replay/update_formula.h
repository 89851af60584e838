// SPDX-License-Identifier: Apache-2.0
// What the papers say of the weights that gradients are taken at, as functions
// of microbatch and stage. From closed forms alone: no order of actions, no
// version table, nothing of WeightPolicy is looked at.
#ifndef WEIR_CALIBRATE_REPLAY_UPDATE_FORMULA_H_
#define WEIR_CALIBRATE_REPLAY_UPDATE_FORMULA_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// p stages (one for each rank but where replicas are), m microbatches a batch.
struct FormulaShape {
  int num_stages = 1;
  int num_microbatches = 1;
};

// Weights of a stage: `version` updates after the first, moved by what
// `distance` more would do, by an estimate from that version's state.
struct WeightsRead {
  int version = 0;
  double distance = 0;
};

struct UpdateFormula {
  std::string text;  // "W(t+1) = W(t) - v grad f(W(t-1)); source"
  // [stage]: microbatches whose mean gradient makes an update. A last group
  // with fewer is never applied.
  std::vector<int> microbatches_per_update;
  // Of a microbatch from 0, over all batches.
  std::function<WeightsRead(int stage, int microbatch)> forward, backward;
  // Distances are along an average of past updates (PipeMare), not along the
  // optimizer's next step.
  bool by_average = false;
};

// Of a system without flush. NotFound names one that is not known.
absl::StatusOr<UpdateFormula> FormulaOf(absl::string_view schedule_name,
                                        const FormulaShape& shape);

// W(t+1) = W(t) - v grad f(W(t)), over m microbatches in every stage.
UpdateFormula SynchronousFormula(const FormulaShape& shape);

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_UPDATE_FORMULA_H_
