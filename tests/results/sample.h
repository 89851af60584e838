// SPDX-License-Identifier: Apache-2.0
// Handmade and random results for the tests of results/.
#ifndef WEIR_TESTS_RESULTS_SAMPLE_H_
#define WEIR_TESTS_RESULTS_SAMPLE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "results/result.pb.h"
#include "results/views/explanation.h"

namespace weir::results {

// Returns two replicas of 4 pipeline ranks with 2 GPUs each, which fit in
// memory.
Result SampleResult();

// Returns a similar result without ranks and warnings, for a row of a
// comparison.
Result SampleRow(absl::string_view schedule, double batch_seconds,
                 double peak_memory_bytes);

// Returns an explanation of the first result with two parts and three model
// parameters.
Explanation SampleExplanation();

// Returns a result of given costs, without samples and device.
Result GivenCostsResult();

// Returns a GPipe run with its timeline: passes of 1 s, transfers of 0.1 s,
// memory at the start of each action, two collectives and an optimizer step per
// rank. Odd stages split their backward into I and W. Ranks are on GPUs 8 and
// up.
Result PipelineTimeline(int num_ranks, int num_microbatches);

// Returns a valid timeline of events at random times: they overlap, have no
// duration, repeat, and lack their other ends.
Result RandomTimeline(uint32_t seed, int num_events);

}  // namespace weir::results

#endif  // WEIR_TESTS_RESULTS_SAMPLE_H_
