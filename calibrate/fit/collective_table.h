// SPDX-License-Identifier: Apache-2.0
// Reads tables of nccl-tests measurements as samples to fit.
#ifndef WEIR_CALIBRATE_FIT_COLLECTIVE_TABLE_H_
#define WEIR_CALIBRATE_FIT_COLLECTIVE_TABLE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/fit/fit_collectives.h"

namespace weir::calibrate {

// Reads a table of results/published/kernels: the columns collective
// ("all_reduce", "all_gather", "reduce_scatter", "alltoall"), type ("half") and
// gpus, then one column per message size. The name of such a column is the
// number of bytes, its fields are microseconds. Returns the samples of `type`,
// row by row; all ranks are in one node with the links of `node`.
// Returns InvalidArgument with line and column if a row is invalid.
absl::StatusOr<std::vector<CollectiveSample>> ReadCollectiveTable(
    absl::string_view label, absl::string_view text, absl::string_view type,
    const CollectiveGroup& node);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_COLLECTIVE_TABLE_H_
