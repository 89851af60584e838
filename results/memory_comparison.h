// SPDX-License-Identifier: Apache-2.0
// Peak memory, predicted beside measured.
#ifndef WEIR_RESULTS_MEMORY_COMPARISON_H_
#define WEIR_RESULTS_MEMORY_COMPARISON_H_

#include <string>
#include <vector>

#include "results/pipeline_events.h"
#include "results/result.pb.h"

namespace weir {

struct ComparedClass {
  std::string name;
  double predicted_bytes = 0, measured_bytes = 0;
};

// Of one result.
struct MemoryPeak {
  double bytes = 0;  // of what both count
  // `reserved` (context, libraries) and what communicators hold for good, where
  // the other result counts none of it. Neither changes over time, so the
  // moment of the peak stays.
  double left_out_bytes = 0;
  double at_seconds = 0;
  std::string during;  // "0F3", "after 0F3"
};

struct RankMemory {
  int rank = 0;
  MemoryPeak predicted, measured;
  // By the allocator of the device; 0: it has none.
  double allocator_bytes = 0;
  // What the replay had taken from it, in program order, with buffers of
  // messages that come early and go late; 0: not counted.
  double taken_bytes = 0;
  // At the two peaks, without what was left out. activations holds
  // end_activations: a replay knows one of both.
  std::vector<ComparedClass> classes;

  // Measured bytes are above 0.
  double error() const { return predicted.bytes / measured.bytes - 1; }
  // Of the replay's own count, which `error` compares with the prediction; of
  // the prediction where it has none. 0 without an allocator.
  double allocator_error() const {
    const double counted = taken_bytes > 0 ? taken_bytes : predicted.bytes;
    return allocator_bytes > 0 ? counted / allocator_bytes - 1 : 0;
  }
  // What a runtime needs beyond the peak by time, relative.
  double early_and_late() const {
    return taken_bytes > 0 ? taken_bytes / measured.bytes - 1 : 0;
  }
};

// Ranks of which both count memory: none where one of the results has none.
std::vector<RankMemory> CompareMemory(const Result& predicted,
                                      const PipelineEvents& predicted_timeline,
                                      const Result& measured,
                                      const PipelineEvents& measured_timeline);

}  // namespace weir

#endif  // WEIR_RESULTS_MEMORY_COMPARISON_H_
