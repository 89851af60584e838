// SPDX-License-Identifier: Apache-2.0
// Comparison of predicted and measured peak memory.
#ifndef WEIR_RESULTS_COMPARE_MEMORY_COMPARISON_H_
#define WEIR_RESULTS_COMPARE_MEMORY_COMPARISON_H_

#include <string>
#include <vector>

#include "results/pipeline_events.h"
#include "results/result.pb.h"

namespace weir::results {

struct ComparedClass {
  std::string name;
  double predicted_bytes = 0, measured_bytes = 0;
};

// The peak of one result.
struct MemoryPeak {
  double bytes = 0;  // counted by both results
  // `reserved` (context, libraries) and permanent memory of communicators, if
  // the other result does not count it. Neither changes over time, so the time
  // of the peak is the same without them.
  double left_out_bytes = 0;
  double at_seconds = 0;
  std::string during;  // "0F3", "after 0F3"
};

struct RankMemory {
  int rank = 0;
  MemoryPeak predicted, measured;
  // By the device's allocator; 0: it has none.
  double allocator_bytes = 0;
  // Bytes that the replay had allocated, in program order, including message
  // buffers that are allocated early and freed late; 0: not counted.
  double taken_bytes = 0;
  // At the two peaks, without left-out bytes. activations includes
  // end_activations, which a replay does not distinguish.
  std::vector<ComparedClass> classes;

  // Requires: measured.bytes > 0.
  double error() const { return predicted.bytes / measured.bytes - 1; }
  // Returns the error of the replay's own count relative to the allocator's; of
  // the prediction if the replay has no count. 0 without an allocator.
  double allocator_error() const {
    const double counted = taken_bytes > 0 ? taken_bytes : predicted.bytes;
    return allocator_bytes > 0 ? counted / allocator_bytes - 1 : 0;
  }
  // Returns the relative excess of the replay's count over its peak by time.
  double early_and_late() const {
    return taken_bytes > 0 ? taken_bytes / measured.bytes - 1 : 0;
  }
};

// Returns the ranks whose memory both results count.
std::vector<RankMemory> CompareMemory(const Result& predicted,
                                      const PipelineEvents& predicted_timeline,
                                      const Result& measured,
                                      const PipelineEvents& measured_timeline);

}  // namespace weir::results

#endif  // WEIR_RESULTS_COMPARE_MEMORY_COMPARISON_H_
