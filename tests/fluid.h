// SPDX-License-Identifier: Apache-2.0
// A reference model of timers that are slowed down by flows and by other
// partitions of a physical GPU. It advances from one change to the next, is
// slow and simple, and shares no code with the simulator that it checks. Links
// are not shared: a flow takes its own seconds.
#ifndef WEIR_TESTS_FLUID_H_
#define WEIR_TESTS_FLUID_H_

#include <vector>

namespace weir::fluid {

struct Task {
  double seconds = 0;      // uncontended
  int gpu = -1;            // of a timer that can be slowed down, else -1
  std::vector<int> moves;  // GPUs that this flow slows down
  bool copies = false;     // slows down by Factors::copies, not kernels
  std::vector<int> after;  // tasks that must end before it starts
  // The slowdown of a timer by the number of partitions of its physical GPU
  // that have a timer in flight (1, 2, ...). Empty: always 1. If `by_flows` is
  // false, flows do not slow the timer down.
  std::vector<double> by_parts;
  bool by_flows = true;
};

struct Factors {
  double kernels = 1, copies = 1;
  int gpu = -1;  // index of the physical GPU that partitions share
};

// Returns the end time of each task in seconds. Requires: no task waits for a
// later task.
std::vector<double> EndSeconds(const std::vector<Task>& tasks,
                               const std::vector<Factors>& gpus);

}  // namespace weir::fluid

#endif  // WEIR_TESTS_FLUID_H_
