// SPDX-License-Identifier: Apache-2.0
// Pairs of operations whose times do not fit together.
#ifndef WEIR_RESULTS_IMPORT_WORST_PAIR_H_
#define WEIR_RESULTS_IMPORT_WORST_PAIR_H_

#include <cstdint>

#include "results/import/recorded_run.h"

namespace weir::results {

// The number of such pairs, and the one that fits least.
struct WorstPair {
  int64_t count = 0;
  double seconds = 0;  // by which the pair does not fit
  RecordedOperation first, second;

  void Add(const RecordedOperation& a, const RecordedOperation& b,
           double pair_seconds) {
    ++count;
    if (pair_seconds <= seconds) return;
    seconds = pair_seconds;
    first = a;
    second = b;
  }
};

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_WORST_PAIR_H_
