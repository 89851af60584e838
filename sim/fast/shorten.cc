// SPDX-License-Identifier: Apache-2.0
// Finds where the orders of all ranks repeat, and cuts periods out.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "schedules/stages_by_rank.h"
#include "sim/fast/lanes.h"
#include "sim/fast/shortened_order.h"
#include "sim/fast/steady.h"

namespace weir::sim {
namespace {

int RouteCycle(const schedules::Schedule& schedule) {
  if (Lanes(schedule).count > 1) return 1;
  return schedule.num_routes() * schedule.microbatches_per_route_turn;
}

// Returns a period of rank 0's order, 0: none. Most candidates fail early.
int FirstPeriod(const schedules::Schedule& schedule, int least,
                ShortenedOrder* order) {
  const auto count = static_cast<int32_t>(schedule.rank_actions.front().size());
  const int step = RouteCycle(schedule);
  const int most = std::min(std::max(4 * schedule.num_ranks * step, 64),
                            Lanes(schedule).length / kLeastPeriods);
  for (int period = step; period <= most; period += step) {
    if (period < least) continue;
    if (!order->MayRepeat(count / 3, period) &&
        !order->MayRepeat(count * 4 / 7, period) &&
        !order->MayRepeat(count * 2 / 3, period)) {
      continue;
    }
    if (order->FindStretches(period)) return period;
  }
  return 0;
}

class Shortener {
 public:
  explicit Shortener(const schedules::Schedule& schedule)
      : schedule_(schedule), lanes_(schedule) {}

  bool FindPeriod() {
    std::vector<std::vector<int>> stages = schedules::StagesByRank(schedule_);
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
      ranks_.emplace_back(schedule_, rank, std::move(stages[rank]));
    }
    ranks_.front().ListPositions();
    int least = 1;
    while (true) {
      period_ = FirstPeriod(schedule_, least, &ranks_.front());
      if (period_ == 0) return false;
      if (AllRepeat()) return true;
      least = period_ + 1;
    }
  }

  std::optional<ShortenedSchedule> Cut(const ShortenOptions& options) const {
    int num_periods = schedule_.num_microbatches, deepest = 0;
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
      for (const Stretch& stretch : ranks_[rank].stretches()) {
        num_periods = std::min(num_periods, (stretch.end - stretch.first) /
                                                stretch.period_actions);
        deepest = std::max(deepest, DepthAt(rank, stretch));
      }
    }
    const int depth = std::max(deepest, schedule_.num_ranks);
    const int kept = options.num_periods_kept > 0
                         ? std::max(options.num_periods_kept, kLeastPeriods)
                         : (depth + period_ - 1) / period_ + Settling();
    int left_out = std::max(num_periods - kept, 0);
    left_out -= left_out % options.multiple;
    if (left_out < 1 || left_out < kept / 4) return std::nullopt;
    ShortenedSchedule shortened;
    shortened.num_periods_left_out = left_out;
    shortened.num_periods_kept = num_periods - left_out;
    shortened.period_microbatches = period_ * lanes_.count;
    shortened.num_lanes = lanes_.count;
    FillSchedule(&shortened);
    return shortened;
  }

 private:
  bool AllRepeat() {
    for (ShortenedOrder& rank : ranks_) {
      if (&rank != &ranks_.front()) {
        const bool repeats = rank.FindStretches(period_);
        rank.ForgetPositions();
        if (!repeats) return false;
      }
      if (rank.stretches().size() != ranks_.front().stretches().size()) {
        return false;
      }
    }
    return InputsCome();
  }

  // Returns true if the inputs of a stretch from other stages come from the
  // same stretch of their ranks, in the same direction, or from an earlier one.
  bool InputsCome() const {
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
      for (const Stretch& stretch : ranks_[rank].stretches()) {
        for (int32_t i = 0; i < stretch.period_actions; ++i) {
          if (!InputComes(rank, stretch, stretch.first + i)) return false;
        }
      }
    }
    return true;
  }

  bool InputComes(int rank, const Stretch& stretch, int32_t position) const {
    const schedules::Action& action = schedule_.rank_actions[rank][position];
    const bool forward = action.op == schedules::Op::kForward;
    if (!forward && !schedules::MakesInputGradient(action.op)) return true;
    const int from = action.stage + (forward ? -1 : 1);
    if (from < 0 || from >= schedule_.num_stages) return true;
    const int here = ranks_[rank].ClassOf(action).stretch;
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      const ShortenedOrder& other = ranks_[schedule_.rank_of(from, k)];
      const std::array<schedules::Op, 2> ops =
          forward ? std::array{schedules::Op::kForward, schedules::Op::kForward}
                  : std::array{schedules::Op::kBackward,
                               schedules::Op::kBackwardInput};
      for (schedules::Op op : ops) {
        const PassClass* input = other.Find(op, from, k);
        if (input == nullptr) continue;
        if (input->stretch > here ||
            (input->stretch == here &&
             other.stretches()[here].descending != stretch.descending)) {
          return false;
        }
      }
    }
    return true;
  }

  // Returns the periods until the times usually repeat; fewer if each is a
  // round of all ranks, since more would cost as much as the whole run.
  int Settling() const {
    return period_ * lanes_.count < schedule_.num_ranks ? 4 : 2;
  }

  // Returns the microbatches that have begun before a stretch does.
  int DepthAt(int rank, const Stretch& stretch) const {
    const schedules::Action& first =
        schedule_.rank_actions[rank][stretch.first];
    return stretch.descending
               ? lanes_.length - 1 - lanes_.index(first.last_microbatch())
               : lanes_.index(first.microbatch);
  }

  void FillSchedule(ShortenedSchedule* shortened) const {
    const int of_lane = shortened->num_periods_left_out * period_;
    const int num_microbatches = of_lane * lanes_.count;
    schedules::Schedule& schedule = shortened->schedule;
    schedule.name = schedule_.name;
    schedule.num_ranks = schedule_.num_ranks;
    schedule.num_stages = schedule_.num_stages;
    schedule.num_microbatches = schedule_.num_microbatches - num_microbatches;
    schedule.flush = schedule_.flush;
    schedule.forward_only = schedule_.forward_only;
    schedule.routes = schedule_.routes;
    schedule.microbatches_per_route_turn =
        schedule_.microbatches_per_route_turn -
        (lanes_.count > 1 ? of_lane : 0);
    schedule.weights = schedule_.weights;
    if (schedule_.weights.microbatches_per_update ==
        schedule_.num_microbatches) {
      schedule.weights.microbatches_per_update -= num_microbatches;
    }
    schedule.resident_activations = schedule_.resident_activations;
    schedule.compressed_transfers = schedule_.compressed_transfers;
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
      FillRank(rank, of_lane, shortened);
    }
  }

  void FillRank(int rank, int of_lane, ShortenedSchedule* shortened) const {
    const std::vector<schedules::Action>& actions =
        schedule_.rank_actions[rank];
    const ShortenedOrder& order = ranks_[rank];
    std::vector<Stretch> stretches = order.stretches();
    std::vector<schedules::Action>& kept =
        shortened->schedule.rank_actions.emplace_back();
    size_t num_kept = actions.size();
    for (const Stretch& stretch : stretches) {
      num_kept -= static_cast<size_t>(shortened->num_periods_left_out) *
                  stretch.period_actions;
    }
    kept.reserve(num_kept);
    int32_t position = 0, num_cut = 0;
    const auto keep_until = [&](int32_t end) {
      for (; position < end; ++position) {
        schedules::Action action = actions[position];
        const Stretch& stretch =
            order.stretches()[order.ClassOf(action).stretch];
        // The larger numbers come after an ascending stretch, and in and before
        // a descending one.
        const bool is_after = (position >= stretch.end) != stretch.descending;
        action.microbatch = lanes_.Renumber(action.microbatch, -of_lane,
                                            is_after ? -of_lane : 0);
        kept.push_back(action);
      }
    };
    for (Stretch& stretch : stretches) {
      const int32_t cut =
          shortened->num_periods_left_out * stretch.period_actions;
      const int32_t end = stretch.end;
      stretch.first -= num_cut;
      num_cut += cut;
      stretch.end -= num_cut;
      keep_until(end - cut);
      position = end;
    }
    keep_until(static_cast<int32_t>(actions.size()));
    shortened->stretches.push_back(std::move(stretches));
  }

  const schedules::Schedule& schedule_;
  const Lanes lanes_;
  std::vector<ShortenedOrder> ranks_;
  int period_ = 0;
};

}  // namespace

size_t NumActions(const schedules::Schedule& schedule) {
  size_t count = 0;
  for (const auto& actions : schedule.rank_actions) count += actions.size();
  return count;
}

bool UpdatesOnce(const schedules::Schedule& schedule) {
  if (!schedule.flush) return false;
  if (schedule.forward_only) return true;
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    if (schedule.microbatches_per_update(stage) != schedule.num_microbatches) {
      return false;
    }
  }
  return true;
}

std::optional<ShortenedSchedule> ShortenSchedule(
    const schedules::Schedule& schedule, const ShortenOptions& options) {
  if (!schedule.flush || schedule.resident_activations > 0 ||
      schedule.num_microbatches < kLeastPeriods) {
    return std::nullopt;
  }
  Shortener shortener(schedule);
  if (!shortener.FindPeriod()) return std::nullopt;
  return shortener.Cut(options);
}

ShortenOptions NextTry(const ShortenedSchedule& shortened,
                       const ShortenOptions& options, int period_multiple) {
  ShortenOptions next = options;
  if (period_multiple > 0) {
    next.multiple = std::lcm(options.multiple, period_multiple);
  }
  next.num_periods_kept =
      (period_multiple > 0 ? 1 : 2) * shortened.num_periods_kept;
  return next;
}

}  // namespace weir::sim
