// SPDX-License-Identifier: Apache-2.0
// Detects activation memory that grows with the number of microbatches.
#ifndef WEIR_SCHEDULES_LINT_LINT_MEMORY_H_
#define WEIR_SCHEDULES_LINT_LINT_MEMORY_H_

#include <vector>

#include "schedules/lint/lint.h"

namespace weir::schedules {

// Counts on every rank the (stage, microbatch) activations that it stores from
// F to B or I (without offloaded ones). No known order with bounded memory
// needs more than two per stage of the pipeline (ZB-H2 stores 2p-1 of one
// stage), so a count above 2 x num_stages depends on the microbatches. Reports
//
//   - "memory-all", a note: the count is reached when the rank begins its first
//     backward, as in GPipe.
//   - "memory", an error: the count grows after that by more than num_stages,
//     because forwards outpace backwards in an apparently steady order.
//   - "memory", an error: without a flush, the peak rises from batch to batch
//   at least three times in a row after the pipeline is full, so it never
//   converges.
//   - "memory-deferred", a note: a rank stores more than 2 x num_stages weight
//     gradient inputs between I and W, because W is deferred to the end.
//
// Reports each of these once, for the worst rank. Requires:
// ValidateSchedule(schedule) is OK.
std::vector<Finding> FindMemoryGrowth(const Schedule& schedule);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_LINT_LINT_MEMORY_H_
