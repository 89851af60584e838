// SPDX-License-Identifier: Apache-2.0
// Generates results as they may occur in files, valid according to
// results/validate.h.
#ifndef WEIR_TESTS_FUZZ_GENERATE_RESULT_H_
#define WEIR_TESTS_FUZZ_GENERATE_RESULT_H_

#include "results/result.pb.h"
#include "tests/fuzz/choices.h"

namespace weir::fuzz {

Result GenerateResult(Choices* choices);

// Generates a timeline: a regular pipeline, or events at random times.
Result GenerateTimeline(Choices* choices);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_GENERATE_RESULT_H_
