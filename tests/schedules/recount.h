// SPDX-License-Identifier: Apache-2.0
// Recomputes the version table from its definition and without state: for every
// action, looks at all others of its stage and rank.
#ifndef WEIR_TESTS_SCHEDULES_RECOUNT_H_
#define WEIR_TESTS_SCHEDULES_RECOUNT_H_

#include <algorithm>
#include <set>
#include <vector>

#include "schedules/schedule.h"

namespace weir::schedules {

class Recount {
 public:
  explicit Recount(const Schedule& schedule) : schedule_(schedule) {}

  int Update(int stage, int k) const {
    return schedule_.forward_only
               ? 0
               : k / schedule_.microbatches_per_update(stage);
  }

  // Returns the number of updates of the stage that the rank has applied before
  // it starts `position`: those for which all of its own gradients are
  // complete.
  int Newest(int rank, int position, int stage) const {
    const std::vector<Action>& actions = schedule_.rank_actions[rank];
    const int start = StartOf(rank, position, stage);
    std::set<int> begun, unfinished;
    const int num_updates = schedule_.total_microbatches() /
                            schedule_.microbatches_per_update(stage);
    for (int i = 0; i < std::ssize(actions); ++i) {
      if (actions[i].stage != stage || !CompletesGradient(actions[i].op)) {
        continue;
      }
      for (int j = 0; j < actions[i].num_microbatches; ++j) {
        const int update = Update(stage, actions[i].microbatch + j);
        if (update >= num_updates) continue;
        (i < start ? begun : unfinished).insert(update);
      }
    }
    int done = 0;
    for (int update : begun) done += unfinished.count(update) == 0 ? 1 : 0;
    return done;
  }

  int ForwardVersion(int stage, int k) const {
    const WeightPolicy& weights = schedule_.weights;
    const int rank = schedule_.rank_of(stage, k);
    switch (weights.forward) {
      case WeightPolicy::ForwardRead::kLatest:
        return Newest(rank, PositionOf(rank, Op::kForward, stage, k), stage);
      case WeightPolicy::ForwardRead::kDelayed:
        return std::max(Update(stage, k) - weights.delay_updates, 0);
      case WeightPolicy::ForwardRead::kFirstStage: {
        const int first = schedule_.rank_of(0, k);
        return Newest(first, PositionOf(first, Op::kForward, 0, k), 0);
      }
      case WeightPolicy::ForwardRead::kFirstOfUpdate: {
        int position = PositionOf(rank, Op::kForward, stage, k);
        for (int other = 0; other < schedule_.total_microbatches(); ++other) {
          if (Update(stage, other) != Update(stage, k) ||
              schedule_.rank_of(stage, other) != rank) {
            continue;
          }
          position =
              std::min(position, PositionOf(rank, Op::kForward, stage, other));
        }
        return Newest(rank, position, stage);
      }
    }
    return -1;
  }

  int BackwardVersion(int stage, int k) const {
    if (schedule_.weights.backward ==
        WeightPolicy::BackwardRead::kSameAsForward) {
      return ForwardVersion(stage, k);
    }
    const int rank = schedule_.rank_of(stage, k);
    return Newest(rank, PositionOf(rank, Op::kBackward, stage, k), stage);
  }

  // Returns the number of live versions: the newest, and every older one that
  // is read from now on. Requires: versions[stage][k] is {ForwardVersion,
  // BackwardVersion}.
  int Live(
      int rank, int position,
      const std::vector<std::vector<std::pair<int, int>>>& versions) const {
    const std::vector<Action>& actions = schedule_.rank_actions[rank];
    const int stage = actions[position].stage;
    const int newest = Newest(rank, position, stage);
    std::set<int> held = {newest};
    for (int i = StartOf(rank, position, stage); i < std::ssize(actions); ++i) {
      const Action& action = actions[i];
      if (action.stage != stage) continue;
      for (int j = 0; j < action.num_microbatches; ++j) {
        const auto& [forward, backward] =
            versions[stage][action.microbatch + j];
        if (action.op == Op::kForward && forward < newest) held.insert(forward);
        if (MakesInputGradient(action.op) && backward < newest) {
          held.insert(backward);
        }
      }
    }
    return static_cast<int>(held.size());
  }

 private:
  // Returns the position at which an action starts: that of the previous action
  // if they overlap.
  int StartOf(int rank, int position, int stage) const {
    const std::vector<Action>& actions = schedule_.rank_actions[rank];
    const bool second = position > 0 && actions[position - 1].overlaps_next &&
                        actions[position - 1].stage == stage;
    return position - (second ? 1 : 0);
  }

  // Returns the position of the forward, or of the backward that computes the
  // input gradient.
  int PositionOf(int rank, Op op, int stage, int k) const {
    const std::vector<Action>& actions = schedule_.rank_actions[rank];
    for (int i = 0; i < std::ssize(actions); ++i) {
      const bool wanted = op == Op::kForward
                              ? actions[i].op == Op::kForward
                              : MakesInputGradient(actions[i].op);
      if (wanted && actions[i].stage == stage && actions[i].microbatch <= k &&
          k <= actions[i].last_microbatch()) {
        return i;
      }
    }
    return -1;
  }

  const Schedule& schedule_;
};

}  // namespace weir::schedules

#endif  // WEIR_TESTS_SCHEDULES_RECOUNT_H_
