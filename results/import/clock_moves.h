// SPDX-License-Identifier: Apache-2.0
// What was added to the times of workers.
#ifndef WEIR_RESULTS_IMPORT_CLOCK_MOVES_H_
#define WEIR_RESULTS_IMPORT_CLOCK_MOVES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "results/import/recorded_run.h"

namespace weir::results {

class ClockMoves {
 public:
  ClockMoves(size_t num_steps, int num_clocks);

  // `step` is an index.
  void Add(size_t step, int clock, double seconds);
  void Add(const ClockMoves& other);

  double Of(size_t step, int clock) const {
    return seconds_[step].empty() ? 0 : seconds_[step][clock];
  }

  // Returns the moves of the clocks that were moved, sorted by clock.
  std::vector<MovedClock> Shifts(const RecordedRun& run) const;
  // Returns "-750 ms (pipeline rank 2 of replica 1), ...", the smallest values
  // first. Many values are abbreviated, and refer to the JSON.
  std::string Text(const RecordedRun& run) const;

 private:
  int num_clocks_;
  // [step][clock]; empty for steps in which none was moved.
  std::vector<std::vector<double>> seconds_;
};

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_CLOCK_MOVES_H_
