// SPDX-License-Identifier: Apache-2.0
// Traces of a pipeline, one file for each worker, with clocks that differ.
#ifndef WEIR_TESTS_FUZZ_GENERATE_RECORDING_H_
#define WEIR_TESTS_FUZZ_GENERATE_RECORDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/random_source.h"

namespace weir::fuzz {

struct RecordingRange {
  std::string name;
  int64_t start = 0, end = 0;  // microseconds
};

struct Recording {
  int num_replicas = 1, num_ranks = 1;
  std::vector<std::vector<RecordingRange>> workers;  // replica x ranks + rank
  int64_t end = 0;
  // The fastest transfer between two ranks takes as long in both directions,
  // so that the true clocks follow from the trace.
  bool is_symmetric = true;
};

// Draws a run of GPipe or 1F1B, with or without messages and reductions. Its
// times follow from its dependencies.
Recording DrawRecording(RandomSource* random);

// What is added to the times of each worker.
using ClockOffsets = std::vector<int64_t>;

// Draws offsets that differ by more than any event can hide.
ClockOffsets DrawOffsets(const Recording& recording, RandomSource* random);

// Returns the files of the workers, as PyTorch's profiler writes them. Half of
// the offset is in baseTimeNanoseconds if `uses_base`.
std::vector<std::string> KinetoFiles(const Recording& recording,
                                     const ClockOffsets& offsets,
                                     bool uses_base);

// Returns exports of Nsight Systems, in which a kernel runs as long as its
// range, if there are any. With `hostile`, some values are NULL, of another
// type, or as large as possible.
std::vector<std::string> NsightFiles(const Recording& recording,
                                     const ClockOffsets& offsets,
                                     bool with_kernels,
                                     RandomSource* hostile = nullptr);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_GENERATE_RECORDING_H_
