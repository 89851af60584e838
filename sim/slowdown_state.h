// SPDX-License-Identifier: Apache-2.0
// How much slower timers run at a moment: what of Slowdowns is under way.
#ifndef WEIR_SIM_SLOWDOWN_STATE_H_
#define WEIR_SIM_SLOWDOWN_STATE_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/task_graph.h"

namespace weir {

// Of a timer, by either cause; they multiply.
struct SlowdownFactors {
  double flows = 1, parts = 1;

  double both() const { return flows * parts; }
  bool operator==(const SlowdownFactors&) const = default;
};

class SlowdownState {
 public:
  // `slowdowns` must outlive it.
  explicit SlowdownState(const Slowdowns& slowdowns);

  // The GPU whose flows and card slow the timer down; -1: nothing does.
  int32_t GpuOf(int32_t task) const {
    return slowdowns_.timers.empty() ? -1 : slowdowns_.timers[task].gpu;
  }
  // REQUIRES: GpuOf(task) >= 0, and the GPU computes.
  SlowdownFactors FactorsOf(int32_t task) const;

  // A flow of the pair begins (+1) or ends (-1). The GPUs whose timers go on at
  // another speed.
  std::span<const int32_t> CountFlow(int32_t pair, int change);

  // A GPU begins (+1) or ends (-1) to compute. The GPUs of its card; none where
  // it is no part of one.
  std::span<const int32_t> CountPart(int32_t gpu, int change);

 private:
  struct Card {
    std::vector<int32_t> gpus;
    int32_t num_computing = 0;
  };

  double FactorOfFlows(int32_t gpu) const;

  const Slowdowns& slowdowns_;
  std::vector<std::array<int32_t, 2>> num_moving_;  // [gpu][mover]
  std::vector<Card> cards_;
};

}  // namespace weir

#endif  // WEIR_SIM_SLOWDOWN_STATE_H_
