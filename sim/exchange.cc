// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange.h"

namespace weir {
namespace {

bool StartsPair(const std::vector<Action>& actions, size_t i) {
  return i + 1 < actions.size() && actions[i].op == Op::kForward &&
         (actions[i + 1].op == Op::kBackward ||
          actions[i + 1].op == Op::kBackwardInput);
}

// A rank that does all its forwards before its first backward has one place
// where a backward follows a forward, and no steady phase.
bool HasSteadyPhase(const std::vector<Action>& actions) {
  int pairs = 0;
  for (size_t i = 0; i < actions.size(); ++i) pairs += StartsPair(actions, i);
  return pairs > 1;
}

}  // namespace

std::vector<Exchanges> PlanExchanges(const Schedule& schedule) {
  const bool chunked = schedule.num_stages > schedule.num_ranks;
  std::vector<Exchanges> ranks;
  for (const auto& actions : schedule.rank_actions) {
    const bool pairs = chunked && HasSteadyPhase(actions);
    Exchanges exchanges;
    const auto count = static_cast<int32_t>(actions.size());
    exchanges.send_after.resize(count);
    exchanges.receive_after.resize(count);
    int32_t last = -1;
    for (int32_t i = 0; i < count; ++i) {
      exchanges.receive_after[i] = last;
      const bool inside = pairs && StartsPair(actions, i);
      exchanges.send_after[i] = inside ? i + 1 : i;
      if (!inside) last = i;
    }
    ranks.push_back(std::move(exchanges));
  }
  return ranks;
}

}  // namespace weir
