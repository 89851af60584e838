// SPDX-License-Identifier: Apache-2.0
// Invariants of every simulation result.
#ifndef WEIR_TESTS_FUZZ_RESULT_INVARIANTS_H_
#define WEIR_TESTS_FUZZ_RESULT_INVARIANTS_H_

#include "results/result.pb.h"

namespace weir::fuzz {

// Requires that no quantity is negative, infinite or NaN; that busy and idle
// seconds add up to the run; that parts, kinds of evidence and classes of
// memory add up; and that the result's peak is that of the worst rank.
void CheckQuantities(const Result& result);

// Requires that a complete timeline is valid, that no GPU runs two actions at
// once unless the schedule overlaps them, that memory reaches the peak, and
// that all allocations are freed. Requires: `result` has its whole timeline.
void CheckTimeline(const Result& result);

// Requires that every view renders and that JSON, CSV and traces parse to the
// same values.
void CheckViews(const Result& result);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_RESULT_INVARIANTS_H_
