// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/exchange.h"

#include "schedules/stages_by_rank.h"

namespace weir::sim {
namespace {

class Planner {
 public:
  explicit Planner(const std::vector<schedules::Action>& actions)
      : actions_(actions) {
    for (int32_t i = 0; i < std::ssize(actions); ++i) {
      if (schedules::IsCompute(actions[i].op)) compute_.push_back(i);
    }
  }

  Exchanges Plan(bool chunked) const {
    const bool pairs = chunked && HasSteadyPhase();
    std::vector<bool> stops(actions_.size());
    for (size_t k = 0; k < compute_.size(); ++k) {
      stops[compute_[k]] = !actions_[compute_[k]].overlaps_next &&
                           !(pairs && StartsPair(k) && IsFree(k));
    }
    Exchanges exchanges;
    exchanges.send_after.resize(actions_.size());
    exchanges.receive_after.resize(actions_.size());
    int32_t last = -1;
    for (int32_t i = 0; i < std::ssize(actions_); ++i) {
      exchanges.receive_after[i] = last;
      if (stops[i]) last = i;
    }
    for (int32_t i = std::ssize(actions_) - 1; i >= 0; --i) {
      if (stops[i]) last = i;
      exchanges.send_after[i] = last;
    }
    return exchanges;
  }

 private:
  // k counts compute actions.
  bool StartsPair(size_t k) const {
    return k + 1 < compute_.size() &&
           actions_[compute_[k]].op == schedules::Op::kForward &&
           schedules::MakesInputGradient(actions_[compute_[k + 1]].op);
  }

  // Neither this action nor the next one overlaps another action.
  bool IsFree(size_t k) const {
    return !actions_[compute_[k + 1]].overlaps_next &&
           !(k > 0 && actions_[compute_[k - 1]].overlaps_next);
  }

  // In a rank that does all forwards before its first backward, only one
  // backward follows a forward: it has no steady phase.
  bool HasSteadyPhase() const {
    int pairs = 0;
    for (size_t k = 0; k < compute_.size(); ++k) pairs += StartsPair(k);
    return pairs > 1;
  }

  const std::vector<schedules::Action>& actions_;
  std::vector<int32_t> compute_;  // positions
};

}  // namespace

std::vector<Exchanges> PlanExchanges(const schedules::Schedule& schedule) {
  const std::vector<std::vector<int>> stages =
      schedules::StagesByRank(schedule);
  std::vector<Exchanges> ranks;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const bool chunked = stages[rank].size() > 1;
    ranks.push_back(Planner(schedule.rank_actions[rank]).Plan(chunked));
  }
  return ranks;
}

}  // namespace weir::sim
