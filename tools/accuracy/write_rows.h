// SPDX-License-Identifier: Apache-2.0
// Writes the rows of a set of kernels or collectives in the format that "weir
// validate --format csv" has for whole steps.
#ifndef WEIR_TOOLS_ACCURACY_WRITE_ROWS_H_
#define WEIR_TOOLS_ACCURACY_WRITE_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace weir {

struct MeasuredSeconds {
  int line = 0;  // line of the source table, or row number
  std::string row;
  double seconds = 0;
};

// Writes FOLDER/SET.csv. Requires: as many predictions as rows. Returns
// InvalidArgument if it cannot be written.
absl::Status WriteRows(const std::string& path,
                       absl::Span<const MeasuredSeconds> rows,
                       absl::Span<const double> predicted_seconds);

}  // namespace weir

#endif  // WEIR_TOOLS_ACCURACY_WRITE_ROWS_H_
