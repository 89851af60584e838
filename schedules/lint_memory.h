// SPDX-License-Identifier: Apache-2.0
// Activations that grow with the number of microbatches.
#ifndef WEIR_SCHEDULES_LINT_MEMORY_H_
#define WEIR_SCHEDULES_LINT_MEMORY_H_

#include <vector>

#include "schedules/lint.h"

namespace weir {

// Counts, on every rank, the (stage, microbatch) activations that it holds from
// F to B or I (less those offloaded). No order known to keep its memory bounded
// needs more than two per stage of the pipeline (ZB-H2 holds 2p-1 of one
// stage), so what is above 2 x num_stages depends on the microbatches:
//  - it was there when the rank began its first backward: a GPipe-like order,
//    which is what it is. A note, "memory-all".
//  - it grew after that, by more than num_stages: forwards outrun backwards in
//    an order that pretends to be steady. An error, "memory".
//  - without flush, the peak rises from batch to batch, three times in a row or
//    more, once the pipeline is full: it never settles. An error, "memory".
//  - inputs of weight gradients pile up between I and W, more than 2 x
//    num_stages on a rank: W deferred to the end. A note, "memory-deferred".
// The worst rank is reported, for each of these once.
// REQUIRES: ValidateSchedule(schedule) is OK.
std::vector<Finding> FindMemoryGrowth(const Schedule& schedule);

}  // namespace weir

#endif  // WEIR_SCHEDULES_LINT_MEMORY_H_
