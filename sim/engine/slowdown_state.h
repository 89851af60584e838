// SPDX-License-Identifier: Apache-2.0
// The current speed of timers: the Slowdowns whose causes are in flight.
#ifndef WEIR_SIM_ENGINE_SLOWDOWN_STATE_H_
#define WEIR_SIM_ENGINE_SLOWDOWN_STATE_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/task_graph.h"

namespace weir::sim {

// Slowdown factors of a timer by cause; they multiply.
struct SlowdownFactors {
  double flows = 1, parts = 1;

  double both() const { return flows * parts; }
  bool operator==(const SlowdownFactors&) const = default;
};

class SlowdownState {
 public:
  // `slowdowns` must outlive this object.
  explicit SlowdownState(const Slowdowns& slowdowns);

  // Returns the GPU whose flows and partitions slow the timer down; -1: none.
  int32_t GpuOf(int32_t task) const {
    return slowdowns_.timers.empty() ? -1 : slowdowns_.timers[task].gpu;
  }
  // Requires: GpuOf(task) >= 0, and the GPU computes.
  SlowdownFactors FactorsOf(int32_t task) const;

  // Records that a flow of the pair begins (+1) or ends (-1). Returns the GPUs
  // whose timers change speed.
  std::span<const int32_t> CountFlow(int32_t pair, int change);

  // Records that a GPU begins (+1) or ends (-1) computing. Returns the GPUs of
  // its physical GPU; none if it is not a partition.
  std::span<const int32_t> CountPart(int32_t gpu, int change);

 private:
  struct SharedGpu {
    std::vector<int32_t> gpus;
    int32_t num_computing = 0;
  };

  double FactorOfFlows(int32_t gpu) const;

  const Slowdowns& slowdowns_;
  std::vector<std::array<int32_t, 2>> num_moving_;  // [gpu][mover]
  std::vector<SharedGpu> shared_gpus_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_ENGINE_SLOWDOWN_STATE_H_
