// SPDX-License-Identifier: Apache-2.0
// A collected sweep as tables.
#ifndef WEIR_PLAN_SWEEP_SWEEP_VIEWS_H_
#define WEIR_PLAN_SWEEP_SWEEP_VIEWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/sweep/collect.h"

namespace weir::plan {

// Returns a row per point that is done: those that fit first, then the fastest
// first; at most `num_rows` (0: all), and a line with the number of others.
// Points that are not done are counted by reason.
std::string PointsTable(const CollectedSweep& collected, uint32_t num_rows);

// Returns the names of the metrics of PivotTable.
std::vector<std::string> PivotMetrics();
// Returns InvalidArgument "is x, expected y" for another name.
absl::StatusOr<std::string> ParsePivotMetric(const std::string& name);

// The best value of a metric for each pair of values of two fields.
struct Pivot {
  std::string metric;  // title: "step time"
  std::string row_field, column_field;
  std::vector<std::string> rows, columns;  // values in the order of the sweep
  // [row][column]: the best value over all other fields, of points that are
  // done and fit; absent if there are none.
  std::vector<std::vector<std::optional<double>>> cells;
  std::string (*text)(double value);
  bool more_is_better = false;
};

// Returns the pivot of two fields ("tp,pp"). Errors name `option`. Returns
// InvalidArgument if the sweep lacks a field, or there is no such metric.
absl::StatusOr<Pivot> PivotOf(const CollectedSweep& collected,
                              absl::string_view option,
                              absl::string_view fields,
                              absl::string_view metric);

// Returns a table with a row for each value of one field and a column for each
// value of another ("tp,pp"). A cell has the best value of the metric over all
// other fields, of points that are done and fit, and "-" if there are none.
// Returns the errors of PivotOf.
absl::StatusOr<std::string> PivotTable(const CollectedSweep& collected,
                                       absl::string_view fields,
                                       absl::string_view metric);

// Returns a JSON object with the counts, the best point, the names of the swept
// fields, and all points: objects with the columns of the table that are not
// empty.
std::string SweepJson(const CollectedSweep& collected);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SWEEP_SWEEP_VIEWS_H_
