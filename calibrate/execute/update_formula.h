// SPDX-License-Identifier: Apache-2.0
// The papers' definitions of the weights at which gradients are computed, as
// functions of microbatch and stage. They are closed forms, independent of the
// order of actions, version tables and WeightPolicy.
#ifndef WEIR_CALIBRATE_EXECUTE_UPDATE_FORMULA_H_
#define WEIR_CALIBRATE_EXECUTE_UPDATE_FORMULA_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::calibrate {

// p stages (one per rank without replicas), m microbatches per batch.
struct FormulaShape {
  int num_stages = 1;
  int num_microbatches = 1;
};

// Weights of a stage: `version` updates after the initial ones, extrapolated by
// `distance` further updates with an estimate from that version's state.
struct WeightsRead {
  int version = 0;
  double distance = 0;
};

struct UpdateFormula {
  std::string text;  // "w(t+1) = w(t) - eta grad f(w(t-1)); source"
  // [stage]: microbatches whose mean gradient is one update. An incomplete last
  // group is never applied.
  std::vector<int> microbatches_per_update;
  // Weights read for a microbatch, numbered from 0 over all batches.
  std::function<WeightsRead(int stage, int microbatch)> forward, backward;
  // Distances are along an average of past updates (PipeMare), not along the
  // optimizer's next step.
  bool by_average = false;
};

// Returns the formula of a system without flush. Returns NotFound for an
// unknown one.
absl::StatusOr<UpdateFormula> FormulaOf(absl::string_view schedule_name,
                                        const FormulaShape& shape);

// Returns w(t+1) = w(t) - eta grad f(w(t)), over m microbatches in every stage.
UpdateFormula SynchronousFormula(const FormulaShape& shape);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_UPDATE_FORMULA_H_
