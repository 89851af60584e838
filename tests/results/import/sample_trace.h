// SPDX-License-Identifier: Apache-2.0
// Small recorded runs as text: a pipeline of ranks with GPipe's order, whose
// times follow from its dependencies.
#ifndef WEIR_TESTS_RESULTS_IMPORT_SAMPLE_TRACE_H_
#define WEIR_TESTS_RESULTS_IMPORT_SAMPLE_TRACE_H_

#include <functional>
#include <string>
#include <vector>

#include "results/import/recorded_run.h"

namespace weir::results {

struct SampleShape {
  int num_replicas = 2, num_ranks = 2, num_microbatches = 2, num_steps = 3;
  double forward_seconds = 1, backward_seconds = 2, message_seconds = 0.25;
  double gather_seconds = 0.5, reduction_seconds = 0.75, clip_seconds = 0.125;
  double optimizer_seconds = 0.5;
  // Multiplies the time of a pass; null: 1.
  std::function<double(const RecordedOperation&)> factor;
};

// Returns the operations of all steps, computed forward in time. Step numbers
// are 10, 20, ...; each begins at 0.
std::vector<RecordedOperation> SampleOperations(const SampleShape& shape);

// The step time of one step.
double SampleStepSeconds(const SampleShape& shape, int step);

// As ByteDance writes them.
std::string SampleJson(const std::vector<RecordedOperation>& operations);
std::string SampleCsv(const std::vector<RecordedOperation>& operations);

// Returns the text compressed by gzip.
std::string Gzip(const std::string& text);

}  // namespace weir::results

#endif  // WEIR_TESTS_RESULTS_IMPORT_SAMPLE_TRACE_H_
