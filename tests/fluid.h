// SPDX-License-Identifier: Apache-2.0
// Timers that flows slow down, step by step from one change to the next. Slow,
// obvious, and shares no code with the simulator that it judges. Nobody shares
// a link here: a flow takes its seconds.
#ifndef WEIR_TESTS_FLUID_H_
#define WEIR_TESTS_FLUID_H_

#include <vector>

namespace weir::fluid {

struct Task {
  double seconds = 0;      // alone
  int gpu = -1;            // of a timer that can be slowed; else -1
  std::vector<int> moves;  // GPUs that it slows; empty: none
  bool copies = false;     // by their second factor
  std::vector<int> after;  // tasks that end before it starts
};

struct Factors {
  double kernels = 1, copies = 1;
};

// When each task ends. REQUIRES: no task waits for a later one.
std::vector<double> EndSeconds(const std::vector<Task>& tasks,
                               const std::vector<Factors>& gpus);

}  // namespace weir::fluid

#endif  // WEIR_TESTS_FLUID_H_
