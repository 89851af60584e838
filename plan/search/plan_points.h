// SPDX-License-Identifier: Apache-2.0
// Reads the plans of a JSON report back, for figures.
#ifndef WEIR_PLAN_SEARCH_PLAN_POINTS_H_
#define WEIR_PLAN_SEARCH_PLAN_POINTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::plan {

struct PlanPoint {
  std::string label;  // "tp 4, pp 8, dp 2, zb-h1"
  double batch_seconds = 0;
  double peak_memory_bytes = 0;
  double num_gpus = 0;
  std::optional<double> price_per_sample;
};

// Returns true if the text looks like the output of "weir plan --format json".
bool IsPlanJson(absl::string_view text);

// Returns the plans of such an output. Labels have the sizes and the schedule,
// and further choices where plans of equal labels differ in them. Returns
// InvalidArgument, which names `label`, if it is none.
absl::StatusOr<std::vector<PlanPoint>> PlanPointsOfJson(absl::string_view label,
                                                        absl::string_view text);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_PLAN_POINTS_H_
