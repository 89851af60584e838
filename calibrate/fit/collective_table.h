// SPDX-License-Identifier: Apache-2.0
// Published tables of nccl-tests measurements, as samples to fit.
#ifndef WEIR_CALIBRATE_FIT_COLLECTIVE_TABLE_H_
#define WEIR_CALIBRATE_FIT_COLLECTIVE_TABLE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/fit/fit_collectives.h"

namespace weir {

// The table of github.com/ai-dynamo/aiconfigurator (comm/nccl): op_name,
// nccl_dtype ("half", "int8"), num_gpus, message_size in elements, latency in
// milliseconds. Rows of `type` and of `least_bytes` or more; all ranks in one
// node whose links are those of `node`. InvalidArgument names line and column.
absl::StatusOr<std::vector<CollectiveSample>> ReadCollectiveTable(
    absl::string_view label, absl::string_view text, absl::string_view type,
    double least_bytes, const CollectiveGroup& node);

// All-reduces of github.com/VIA-Research/vTrain (trace/*/..._AR_GPU*.csv):
// bytes first, nanoseconds out of place in the fourth column. `group` are the
// ranks.
absl::StatusOr<std::vector<CollectiveSample>> ReadAllReduceTable(
    absl::string_view label, absl::string_view text,
    const CollectiveGroup& group);

}  // namespace weir

#endif  // WEIR_CALIBRATE_FIT_COLLECTIVE_TABLE_H_
