// SPDX-License-Identifier: Apache-2.0
// Restores the periods that were cut out of a schedule.
#include <array>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sim/fast/lanes.h"
#include "sim/fast/steady.h"

namespace weir::sim {
namespace {

// Restores the periods of one rank.
class Restorer {
 public:
  Restorer(const ShortenedSchedule& shortened, int rank)
      : lanes_(shortened.schedule),
        actions_(shortened.schedule.rank_actions[rank]),
        stretches_(shortened.stretches[rank]),
        num_periods_(shortened.num_periods_left_out),
        period_(shortened.period_microbatches / shortened.num_lanes) {}

  std::vector<schedules::Action> Restore() {
    FindStretches();
    const int of_lane = num_periods_ * period_;
    size_t next = 0;
    for (int32_t i = 0; i <= std::ssize(actions_); ++i) {
      if (next < stretches_.size() && stretches_[next].end == i) {
        AddPeriods(stretches_[next++]);
      }
      if (i == std::ssize(actions_)) break;
      schedules::Action action = actions_[i];
      const Stretch& stretch = StretchOf(action);
      const bool is_after = (i >= stretch.end) != stretch.descending;
      action.microbatch =
          lanes_.Renumber(action.microbatch, of_lane, is_after ? of_lane : 0);
      restored_.push_back(action);
    }
    return std::move(restored_);
  }

 private:
  using Key = std::array<int, 4>;  // op, stage, lane, index modulo the period

  Key KeyOf(const schedules::Action& action, int k) const {
    const int microbatch = action.microbatch + k;
    return {static_cast<int>(action.op), action.stage, lanes_.lane(microbatch),
            lanes_.index(microbatch) % period_};
  }

  void FindStretches() {
    for (size_t s = 0; s < stretches_.size(); ++s) {
      for (int32_t i = 0; i < stretches_[s].period_actions; ++i) {
        const schedules::Action& action = actions_[stretches_[s].first + i];
        for (int k = 0; k < action.num_microbatches; ++k) {
          stretch_of_[KeyOf(action, k)] = static_cast<int>(s);
        }
      }
    }
  }

  const Stretch& StretchOf(const schedules::Action& action) const {
    Key key = KeyOf(action, 0);
    auto at = stretch_of_.find(key);
    for (schedules::Op other : OthersLike(action.op)) {
      if (at != stretch_of_.end()) break;
      key[0] = static_cast<int>(other);
      at = stretch_of_.find(key);
    }
    return stretches_[at->second];
  }

  void AddPeriods(const Stretch& stretch) {
    for (int32_t i = 0; i < num_periods_ * stretch.period_actions; ++i) {
      schedules::Action action =
          restored_[restored_.size() - stretch.period_actions];
      action.microbatch += stretch.descending ? -period_ : period_;
      restored_.push_back(action);
    }
  }

  const Lanes lanes_;  // those of the short schedule
  const std::vector<schedules::Action>& actions_;
  const std::vector<Stretch>& stretches_;
  const int num_periods_, period_;
  absl::flat_hash_map<Key, int> stretch_of_;
  std::vector<schedules::Action> restored_;
};

}  // namespace

schedules::Schedule RestoreSchedule(const ShortenedSchedule& shortened) {
  schedules::Schedule schedule = shortened.schedule;
  const int num_microbatches =
      shortened.num_periods_left_out * shortened.period_microbatches;
  if (schedule.weights.microbatches_per_update == schedule.num_microbatches) {
    schedule.weights.microbatches_per_update += num_microbatches;
  }
  schedule.num_microbatches += num_microbatches;
  if (shortened.num_lanes > 1) {
    schedule.microbatches_per_route_turn +=
        num_microbatches / shortened.num_lanes;
  }
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    schedule.rank_actions[rank] = Restorer(shortened, rank).Restore();
  }
  return schedule;
}

}  // namespace weir::sim
