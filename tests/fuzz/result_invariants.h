// SPDX-License-Identifier: Apache-2.0
// What holds of every result of a simulation.
#ifndef WEIR_TESTS_FUZZ_RESULT_INVARIANTS_H_
#define WEIR_TESTS_FUZZ_RESULT_INVARIANTS_H_

#include "results/result.pb.h"

namespace weir {

// Requires that no quantity is negative, infinite or NaN; that busy and idle
// seconds make up the run; that parts, kinds of evidence and classes of memory
// add up; that the worst rank's peak is the result's.
void CheckQuantities(const Result& result);

// Requires that a complete timeline is valid, that no GPU does two things at
// once unless the schedule overlaps them, that memory reaches the peak and that
// all allocations are freed. REQUIRES: `result` kept all of its timeline.
void CheckTimeline(const Result& result);

// Requires that every view renders and that what is JSON, CSV or a trace reads
// back.
void CheckViews(const Result& result);

}  // namespace weir

#endif  // WEIR_TESTS_FUZZ_RESULT_INVARIANTS_H_
