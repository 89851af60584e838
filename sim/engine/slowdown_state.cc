// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/slowdown_state.h"

#include <algorithm>
#include <cstddef>

namespace weir::sim {

SlowdownState::SlowdownState(const Slowdowns& slowdowns)
    : slowdowns_(slowdowns), num_moving_(slowdowns.factors.size()) {
  for (int32_t gpu = 0; gpu < std::ssize(slowdowns_.physical_gpu); ++gpu) {
    const int32_t card = slowdowns_.physical_gpu[gpu];
    if (card < 0) continue;
    if (card >= std::ssize(shared_gpus_)) shared_gpus_.resize(card + 1);
    shared_gpus_[card].gpus.push_back(gpu);
  }
}

double SlowdownState::FactorOfFlows(int32_t gpu) const {
  const auto& factors = slowdowns_.factors[gpu];
  const auto& moving = num_moving_[gpu];
  if (moving[0] > 0 && moving[1] > 0) return std::max(factors[0], factors[1]);
  return moving[0] > 0 ? factors[0] : moving[1] > 0 ? factors[1] : 1;
}

SlowdownFactors SlowdownState::FactorsOf(int32_t task) const {
  const Slowdowns::Timer& timer = slowdowns_.timers[task];
  SlowdownFactors factors;
  if (timer.by_flows) factors.flows = FactorOfFlows(timer.gpu);
  if (timer.curve >= 0) {
    const SharedGpu& card = shared_gpus_[slowdowns_.physical_gpu[timer.gpu]];
    factors.parts = slowdowns_.curves[timer.curve][card.num_computing - 1];
  }
  return factors;
}

std::span<const int32_t> SlowdownState::CountFlow(int32_t pair, int change) {
  if (slowdowns_.timers.empty()) return {};
  const Slowdowns::Touch& touch = slowdowns_.touches[pair];
  for (int32_t gpu : touch.gpus) {
    num_moving_[gpu][static_cast<size_t>(touch.mover)] += change;
  }
  return touch.gpus;
}

std::span<const int32_t> SlowdownState::CountPart(int32_t gpu, int change) {
  if (slowdowns_.physical_gpu.empty() || slowdowns_.physical_gpu[gpu] < 0)
    return {};
  SharedGpu& card = shared_gpus_[slowdowns_.physical_gpu[gpu]];
  card.num_computing += change;
  return card.gpus;
}

}  // namespace weir::sim
