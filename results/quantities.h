// SPDX-License-Identifier: Apache-2.0
// What people measure of a run, each as a column of a table and as a function
// of a result.
#ifndef WEIR_RESULTS_QUANTITIES_H_
#define WEIR_RESULTS_QUANTITIES_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir {

// How a published TFLOP/s counts a step of B sequences of s tokens through l
// layers of h units with V words (Narayanan et al., SC 2021, section 5.1):
//   kMegatron96  96 B s l h^2 (1 + s / (6 h) + V / (16 l h)), with full
//                recomputation
//   kModel72     72 B s l h^2 (1 + s / (6 h) + V / (12 l h)), without
enum class FlopsFormula { kNone, kMegatron96, kModel72 };

// "megatron96", "model72"; InvalidArgument "is x, expected ...".
absl::StatusOr<FlopsFormula> ParseFlopsFormula(absl::string_view text);

struct FlopsBasis {
  FlopsFormula formula = FlopsFormula::kNone;
  double num_layers = 0;
  double hidden_size = 0;
  double vocabulary_size = 0;
};

double FlopsOfStep(const FlopsBasis& basis, const Result& result);

struct Quantity {
  absl::string_view name;  // of the column
  absl::string_view help;
  double unit;  // predicted value in base units / unit
  // In base units; an error says what it lacks.
  absl::StatusOr<double> (*predict)(const Result&, const FlopsBasis&);
};

// The same prediction if a batch took `batch_seconds`: what people measure of
// time, not the events.
Result AtBatchSeconds(const Result& result, double batch_seconds);

// In the order in which the help lists them.
std::span<const Quantity> AllQuantities();

// Null when there is none of that name.
const Quantity* FindQuantity(absl::string_view name);

}  // namespace weir

#endif  // WEIR_RESULTS_QUANTITIES_H_
