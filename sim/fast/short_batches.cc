// SPDX-License-Identifier: Apache-2.0
#include "sim/fast/short_batches.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/fast/shortened_order.h"
#include "sim/report/batch_ends.h"

namespace weir::sim {
namespace {

// Forward and backward of one microbatch.
constexpr int32_t kPeriodActions = 2;

// Microbatches beyond those in flight that are kept until the times repeat. The
// second try keeps more.
constexpr int kSettling = 8;
constexpr int kMostBatchTries = 2;

// Largest fraction of the microbatches that a short run may keep. The time of
// the short run is wasted if its times do not repeat.
constexpr double kMostPart = 0.75;

// Runs of fewer batches are rarely steady.
constexpr int kLeastBatches = 5;
constexpr int kMostBatchesLeftOut = 2;

// The order of one rank.
class BatchesOfRank {
 public:
  // `live_versions`: see schedules::Semantics.
  BatchesOfRank(const schedules::Schedule& schedule, int rank,
                const std::vector<int32_t>& live_versions)
      : actions_(schedule.rank_actions[rank]),
        live_versions_(live_versions),
        predicts_per_batch_(
            schedule.weights.prediction ==
            schedules::WeightPolicy::Prediction::kFirstForwardOfUpdate),
        last_backward_(LastActionsOf(schedule, rank)),
        first_forward_(schedule.num_batches + 1, -1) {
    for (int32_t i = static_cast<int32_t>(actions_.size()) - 1; i >= 0; --i) {
      if (actions_[i].op != schedules::Op::kForward) continue;
      // The last batch ends with backwards only, after its last forward.
      if (first_forward_.back() < 0) first_forward_.back() = i + 1;
      first_forward_[actions_[i].microbatch / schedule.num_microbatches] = i;
    }
  }

  bool are_single() const {
    return std::all_of(
        actions_.begin(), actions_.end(), [](const schedules::Action& action) {
          return action.num_microbatches == 1 && !action.overlaps_next;
        });
  }

  // Returns the last stretch of a batch, which may be of no actions.
  Stretch StretchOf(int batch) const {
    int32_t begin = batch == 0 ? 0 : last_backward_[batch - 1] + 1;
    if (predicts_per_batch_) {
      begin = std::max(begin, first_forward_[batch] + 1);
    }
    const int32_t end = first_forward_[batch + 1];
    int32_t first = std::max(end - kPeriodActions, begin);
    while (first > begin && Repeats(first - 1, batch > 0)) --first;
    const int32_t num_periods = (end - first) / kPeriodActions;
    return {end - num_periods * kPeriodActions, end, kPeriodActions, false};
  }

 private:
  // Returns true if the action recurs one period later.
  bool Repeats(int32_t position, bool with_versions) const {
    schedules::Action expected = actions_[position];
    ++expected.microbatch;
    const int32_t next = position + kPeriodActions;
    return actions_[next] == expected &&
           (!with_versions || live_versions_[next] == live_versions_[position]);
  }

  const std::vector<schedules::Action>& actions_;
  const std::vector<int32_t>& live_versions_;
  // The first forward of a batch takes longer than others.
  const bool predicts_per_batch_;
  const std::vector<int32_t> last_backward_;  // [batch]
  // [batch]; of the number of batches: the end of all forwards.
  std::vector<int32_t> first_forward_;
};

}  // namespace

int MostWarmupForwards(const schedules::Schedule& schedule) {
  int most = 0;
  for (const std::vector<schedules::Action>& actions : schedule.rank_actions) {
    const auto end = std::find_if(actions.begin(), actions.end(),
                                  [](const schedules::Action& action) {
                                    return action.op != schedules::Op::kForward;
                                  });
    most = std::max(most, static_cast<int>(end - actions.begin()));
  }
  return most;
}

int BatchesLeftOut(const schedules::Schedule& schedule, int num_batches) {
  // A pass that waits for an update of a batch before the last one delays more
  // batches, which takes longer to settle: the try would be in vain.
  if (schedule.weights.forward ==
      schedules::WeightPolicy::ForwardRead::kDelayed) {
    return 0;
  }
  return num_batches - kMostBatchesLeftOut >= kLeastBatches
             ? kMostBatchesLeftOut
             : 0;
}

int MicrobatchesKept(int num_microbatches, int num_in_flight, int num_try) {
  if (num_try >= kMostBatchTries) return 0;
  const int kept =
      num_in_flight + (num_try == 0 ? kSettling : std::max(num_in_flight, 64));
  return kept <= kMostPart * num_microbatches ? kept : 0;
}

std::optional<ShortenedSchedule> ShortenBatches(
    const schedules::Schedule& schedule, const schedules::Semantics& semantics,
    int num_microbatches_left_out) {
  ShortenedSchedule shortened;
  shortened.num_periods_left_out = num_microbatches_left_out;
  shortened.num_periods_kept = schedule.num_microbatches;
  shortened.period_microbatches = 1;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const BatchesOfRank batches(schedule, rank, semantics.live_versions[rank]);
    if (!batches.are_single()) return std::nullopt;
    std::vector<Stretch>& stretches = shortened.stretches.emplace_back();
    for (int batch = 0; batch < schedule.num_batches; ++batch) {
      const Stretch stretch = batches.StretchOf(batch);
      const int num_periods =
          (stretch.end - stretch.first) / stretch.period_actions;
      if (num_periods < kLeastPeriods) return std::nullopt;
      shortened.num_periods_kept =
          std::min(shortened.num_periods_kept, num_periods);
      stretches.push_back(stretch);
    }
  }
  shortened.schedule = schedule;
  return shortened;
}

Window WindowOfShortBatches(const Window& window, const Steadiness& steadiness,
                            int num_periods_left_out) {
  Window whole = window;
  for (const Steadiness::Cut& cut : steadiness.cuts) {
    const double seconds = num_periods_left_out * cut.period_seconds;
    if (cut.at_seconds < window.begin_seconds) whole.begin_seconds += seconds;
    if (cut.at_seconds < window.end_seconds) whole.end_seconds += seconds;
  }
  return whole;
}

}  // namespace weir::sim
