// SPDX-License-Identifier: Apache-2.0
// Consecutive batches of a schedule with a flush, without a barrier between
// them: optimizer post-validation (Qi et al., Zero Bubble Pipeline Parallelism,
// ICLR 2024, section 4).
#ifndef WEIR_SCHEDULES_REPEAT_BATCH_H_
#define WEIR_SCHEDULES_REPEAT_BATCH_H_

#include "absl/status/statusor.h"
#include "schedules/schedule.h"

namespace weir::schedules {

// Returns `num_batches` batches in the order of `batch`. Each rank begins a
// batch when it has ended and updated after the one before. Weight versions
// remain those of a flush: a stage has updated before it reads its weights in
// the next batch. Returns InvalidArgument if microbatches would take other
// routes than in the first batch. Requires: `batch` has a flush and one batch,
// and num_batches >= 1.
absl::StatusOr<Schedule> RepeatBatch(const Schedule& batch, int num_batches);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_REPEAT_BATCH_H_
