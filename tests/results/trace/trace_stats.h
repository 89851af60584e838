// SPDX-License-Identifier: Apache-2.0
// Reads traces back as a viewer does, to compare them with their timeline.
#ifndef WEIR_TESTS_RESULTS_TRACE_TRACE_STATS_H_
#define WEIR_TESTS_RESULTS_TRACE_TRACE_STATS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir::results {

struct ReadSlice {
  std::string process, track, name;
  int64_t start_ns = 0, end_ns = 0;
};

struct ReadTrace {
  std::vector<std::string> errors;  // errors that a viewer would find
  std::vector<std::string> processes;
  std::vector<ReadSlice> slices;  // by start
  // By flow id: indices of the slices in the flow.
  std::map<uint64_t, std::vector<size_t>> flows;
  // By process: (nanoseconds, bytes).
  std::map<std::string, std::vector<std::pair<int64_t, double>>> counters;

  size_t NumCounterValues() const;
  double SumSeconds() const;
  // Returns a description such as "1F0 > send 1F0 -> gpu 10 > 2F0".
  std::string DescribeFlow(uint64_t id) const;
};

ReadTrace ReadPerfetto(absl::string_view bytes);
ReadTrace ReadChrome(absl::string_view text);

}  // namespace weir::results

#endif  // WEIR_TESTS_RESULTS_TRACE_TRACE_STATS_H_
