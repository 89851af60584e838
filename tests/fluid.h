// SPDX-License-Identifier: Apache-2.0
// Timers that flows and other parts of a card slow down, step by step from one
// change to the next. Slow, obvious, and shares no code with the simulator that
// it judges. Nobody shares a link here: a flow takes its seconds.
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
  // Of a timer of a GPU: its factor by how many GPUs of its card have one under
  // way, 1, 2, ...; empty: always 1. Else no flow slows it down.
  std::vector<double> by_parts;
  bool by_flows = true;
};

struct Factors {
  double kernels = 1, copies = 1;
  int card = -1;  // GPUs of one number are parts of one card
};

// When each task ends. REQUIRES: no task waits for a later one.
std::vector<double> EndSeconds(const std::vector<Task>& tasks,
                               const std::vector<Factors>& gpus);

}  // namespace weir::fluid

#endif  // WEIR_TESTS_FLUID_H_
