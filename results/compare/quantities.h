// SPDX-License-Identifier: Apache-2.0
// Quantities that are measured of runs, each as a column of a table and as a
// function of a result.
#ifndef WEIR_RESULTS_COMPARE_QUANTITIES_H_
#define WEIR_RESULTS_COMPARE_QUANTITIES_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir::results {

// Formulas for the FLOP of a step of B sequences of s tokens through l layers
// of h units with V words, behind published TFLOP/s (Narayanan et al., SC 2021,
// section 5.1):
//   kMegatron96  96 B s l h^2 (1 + s / (6 h) + V / (16 l h)), with full
//                recomputation
//   kModel72     72 B s l h^2 (1 + s / (6 h) + V / (12 l h)), without
enum class FlopsFormula { kNone, kMegatron96, kModel72 };

// Parses "megatron96" or "model72"; else InvalidArgument "is x, expected ...".
absl::StatusOr<FlopsFormula> ParseFlopsFormula(absl::string_view text);

struct FlopsBasis {
  FlopsFormula formula = FlopsFormula::kNone;
  double num_layers = 0;
  double hidden_size = 0;
  double vocabulary_size = 0;
};

double FlopsOfStep(const FlopsBasis& basis, const Result& result);

struct Quantity {
  absl::string_view name;  // column name
  absl::string_view help;
  double unit;  // predicted value in base units / unit
  // In base units; an error names what the result lacks.
  absl::StatusOr<double> (*predict)(const Result&, const FlopsBasis&);
};

// Returns the same prediction with batches that take `batch_seconds`: changes
// measured quantities of time, not the events.
Result AtBatchSeconds(const Result& result, double batch_seconds);

// Returns all quantities in the order of the help.
std::span<const Quantity> AllQuantities();

// Returns null if there is no quantity of that name.
const Quantity* FindQuantity(absl::string_view name);

}  // namespace weir::results

#endif  // WEIR_RESULTS_COMPARE_QUANTITIES_H_
