// SPDX-License-Identifier: Apache-2.0
// Quantities that are measured of runs, each as a column of a table and as a
// function of a result.
#ifndef WEIR_RESULTS_COMPARE_QUANTITIES_H_
#define WEIR_RESULTS_COMPARE_QUANTITIES_H_

#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/flops.h"
#include "results/result.pb.h"

namespace weir::results {

// The formula of a measured TFLOP/s or MFU, and the sizes of the model.
struct FlopsBasis {
  FlopsFormula formula = FlopsFormula::kNone;
  double num_layers = 0;
  double hidden_size = 0;
  double vocabulary_size = 0;
};

// Returns the FLOP of a step; absent if the result or the basis lacks what the
// formula needs.
std::optional<double> FlopsOfStep(const FlopsBasis& basis,
                                  const Result& result);

// What a quantity counts of a GPU's memory, in which case the interval of the
// time does not apply.
enum class MemoryScope {
  kNone,
  kUsed,       // everything, as nvidia-smi shows it
  kReserved,   // what the allocator holds
  kAllocated,  // tensors
};

struct Quantity {
  absl::string_view name;  // column name
  absl::string_view help;
  double unit;  // predicted value in base units / unit
  // In base units; returns InvalidArgument with what the result lacks.
  absl::StatusOr<double> (*predict)(const Result&, const FlopsBasis&);
  MemoryScope memory = MemoryScope::kNone;
};

// Returns a copy with `batch_seconds`. Rescales samples/s, tokens/s and MFU,
// and leaves the timeline unchanged.
Result AtBatchSeconds(const Result& result, double batch_seconds);

// Returns all quantities in the order of the help.
std::span<const Quantity> AllQuantities();

// Returns null if there is no quantity of that name.
const Quantity* FindQuantity(absl::string_view name);

}  // namespace weir::results

#endif  // WEIR_RESULTS_COMPARE_QUANTITIES_H_
