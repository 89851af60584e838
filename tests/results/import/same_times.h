// SPDX-License-Identifier: Apache-2.0
// Compares the times of recorded runs.
#ifndef WEIR_TESTS_RESULTS_IMPORT_SAME_TIMES_H_
#define WEIR_TESTS_RESULTS_IMPORT_SAME_TIMES_H_

#include <gtest/gtest.h>

#include <cstddef>

#include "results/import/recorded_run.h"

namespace weir::results {

// Expects the same operations with the same times, within 1e-9 s.
inline void ExpectSameTimes(const RecordedRun& run, const RecordedRun& truth) {
  ASSERT_EQ(run.operations.size(), truth.operations.size());
  for (size_t i = 0; i < run.operations.size(); ++i) {
    EXPECT_NEAR(run.operations[i].start_seconds,
                truth.operations[i].start_seconds, 1e-9);
    EXPECT_NEAR(run.operations[i].end_seconds, truth.operations[i].end_seconds,
                1e-9);
  }
}

}  // namespace weir::results

#endif  // WEIR_TESTS_RESULTS_IMPORT_SAME_TIMES_H_
