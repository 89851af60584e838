// SPDX-License-Identifier: Apache-2.0
// Reads published tables of nccl-tests measurements as samples to fit.
#ifndef WEIR_CALIBRATE_FIT_COLLECTIVE_TABLE_H_
#define WEIR_CALIBRATE_FIT_COLLECTIVE_TABLE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/fit/fit_collectives.h"

namespace weir::calibrate {

// Reads the table of github.com/ai-dynamo/aiconfigurator (comm/nccl): op_name,
// nccl_dtype ("half", "int8"), num_gpus, message_size in elements, latency in
// milliseconds. Returns the rows of `type` with at least `least_bytes`; all
// ranks are in one node with the links of `node`. InvalidArgument names line
// and column.
absl::StatusOr<std::vector<CollectiveSample>> ReadCollectiveTable(
    absl::string_view label, absl::string_view text, absl::string_view type,
    double least_bytes, const CollectiveGroup& node);

// Reads the all-reduces of github.com/VIA-Research/vTrain
// (trace/*/..._AR_GPU*.csv): bytes in the first column, out-of-place
// nanoseconds in the fourth. The ranks are those of `group`.
absl::StatusOr<std::vector<CollectiveSample>> ReadAllReduceTable(
    absl::string_view label, absl::string_view text,
    const CollectiveGroup& group);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_COLLECTIVE_TABLE_H_
