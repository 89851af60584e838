// SPDX-License-Identifier: Apache-2.0
// Results made by hand or by chance for the tests of results/.
#ifndef WEIR_TESTS_RESULTS_SAMPLE_H_
#define WEIR_TESTS_RESULTS_SAMPLE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "results/explanation.h"
#include "results/result.pb.h"

namespace weir {

// Two replicas of 4 pipeline ranks of 2 GPUs that fit in memory.
Result SampleResult();

// The same without ranks and warnings: a row of a comparison.
Result SampleRow(absl::string_view schedule, double batch_seconds,
                 double peak_memory_bytes);

// The first with two parts and three figures.
Explanation SampleExplanation();

// What textbook mode gives: no samples, no device.
Result TextbookResult();

// A GPipe run with its timeline: passes of 1 s, transfers of 0.1 s, memory at
// the start of each action, two collectives and an optimizer step per rank. Odd
// stages split their backward into I and W. Ranks are on GPUs 8 and up.
Result PipelineTimeline(int num_ranks, int num_microbatches);

// A valid timeline of events at random places: they overlap, last nothing,
// repeat and miss their partners.
Result RandomTimeline(uint32_t seed, int num_events);

}  // namespace weir

#endif  // WEIR_TESTS_RESULTS_SAMPLE_H_
