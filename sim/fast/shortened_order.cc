// SPDX-License-Identifier: Apache-2.0
#include "sim/fast/shortened_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weir::sim {
struct ShortenedOrder::Candidate {
  Stretch stretch;
  int32_t num_periods() const {
    return (stretch.end - stretch.first) / stretch.period_actions;
  }
};

ShortenedOrder::ShortenedOrder(const schedules::Schedule& schedule, int rank,
                               std::vector<int> stages)
    : schedule_(schedule),
      lanes_(schedule),
      actions_(schedule.rank_actions[rank]),
      stages_(std::move(stages)) {}

// Only for the ops of this rank: most ranks have two or three of six.
void ShortenedOrder::ListPositions() {
  if (!positions_.empty()) return;
  first_row_.fill(-1);
  size_t num_cells = 0;
  for (const schedules::Action& action : actions_) {
    int64_t& first = first_row_[static_cast<size_t>(action.op)];
    if (first >= 0) continue;
    first = static_cast<int64_t>(num_cells);
    num_cells += stages_.size() * schedule_.total_microbatches();
  }
  positions_.assign(num_cells, -1);
  for (int32_t i = 0; i < std::ssize(actions_); ++i) {
    positions_[PositionCell(actions_[i], actions_[i].microbatch)] = i;
  }
}

void ShortenedOrder::ForgetPositions() {
  std::vector<int32_t>().swap(positions_);
}

int ShortenedOrder::LocalOf(int stage) const {
  if (stages_.size() == 1) return stages_.front() == stage ? 0 : -1;
  const auto at = std::lower_bound(stages_.begin(), stages_.end(), stage);
  return at != stages_.end() && *at == stage
             ? static_cast<int>(at - stages_.begin())
             : -1;
}

bool ShortenedOrder::MayRepeat(int32_t position, int period) const {
  return RepeatsFrom(position, period) || RepeatsFrom(position, -period);
}

bool ShortenedOrder::FindStretches(int period) {
  ListPositions();
  period_ = period;
  std::vector<Candidate> candidates;
  AddCandidates(period, &candidates);
  if (Choose(candidates)) return true;
  AddCandidates(-period, &candidates);
  return Choose(candidates);
}

const PassClass& ShortenedOrder::ClassOf(
    const schedules::Action& action) const {
  return classes_[Cell(action)];
}

const PassClass* ShortenedOrder::Find(schedules::Op op, int stage,
                                      int microbatch) const {
  const int local = LocalOf(stage);
  if (local < 0) return nullptr;
  const PassClass& found = classes_[Cell(op, local, microbatch)];
  return found.stretch < 0 ? nullptr : &found;
}

size_t ShortenedOrder::PositionCell(const schedules::Action& action,
                                    int microbatch) const {
  return first_row_[static_cast<size_t>(action.op)] +
         static_cast<size_t>(LocalOf(action.stage)) *
             schedule_.total_microbatches() +
         microbatch;
}

size_t ShortenedOrder::Cell(schedules::Op op, int local, int microbatch) const {
  const size_t row = static_cast<size_t>(op) * stages_.size() + local;
  return (row * lanes_.count + lanes_.lane(microbatch)) * period_ +
         lanes_.index(microbatch) % period_;
}

size_t ShortenedOrder::Cell(const schedules::Action& action) const {
  return Cell(action.op, LocalOf(action.stage), action.microbatch);
}

bool ShortenedOrder::IsSecond(int32_t position) const {
  return position > 0 && actions_[position - 1].overlaps_next;
}

bool ShortenedOrder::IsCopy(int32_t position, int32_t other,
                            int microbatches) const {
  const schedules::Action& one = actions_[position];
  const schedules::Action& copy = actions_[other];
  if (copy.op != one.op || copy.stage != one.stage ||
      copy.microbatch != one.microbatch + microbatches ||
      copy.num_microbatches != one.num_microbatches ||
      copy.overlaps_next != one.overlaps_next ||
      IsSecond(other) != IsSecond(position)) {
    return false;
  }
  return lanes_.lane(copy.microbatch) == lanes_.lane(one.microbatch);
}

int32_t ShortenedOrder::Distance(int32_t position, int microbatches) const {
  const schedules::Action& action = actions_[position];
  const int wanted = action.microbatch + microbatches;
  if (wanted < 0 || wanted >= schedule_.total_microbatches()) return 0;
  const int32_t other = positions_[PositionCell(action, wanted)];
  return other >= 0 && IsCopy(position, other, microbatches) ? other - position
                                                             : 0;
}

bool ShortenedOrder::Choose(std::vector<Candidate> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return a.num_periods() > b.num_periods();
                   });
  classes_.assign(
      schedules::kNumScheduledOps * stages_.size() * lanes_.count * period_,
      {});
  stretches_.clear();
  for (const Candidate& candidate : candidates) {
    if (IsNew(candidate.stretch)) Take(candidate.stretch);
  }
  return SortStretches() && CheckOrder();
}

bool ShortenedOrder::RepeatsFrom(int32_t position, int microbatches) const {
  const int32_t distance = Distance(position, microbatches);
  if (distance <= 0) return false;
  const auto count = static_cast<int32_t>(actions_.size());
  const int32_t length = std::max(distance, count / 64);
  if (position + length + distance > count) return false;
  for (int32_t i = 1; i < length; ++i) {
    if (!IsCopy(position + i, position + i + distance, microbatches)) {
      return false;
    }
  }
  return true;
}

void ShortenedOrder::AddCandidates(int microbatches,
                                   std::vector<Candidate>* candidates) {
  const auto count = static_cast<int32_t>(actions_.size());
  int32_t first = 0, distance = 0;
  for (int32_t i = 0; i <= count; ++i) {
    // Usually the repetition continues, so checking one copy is enough.
    if (distance > 0 && i + distance < count &&
        IsCopy(i, i + distance, microbatches)) {
      continue;
    }
    const int32_t here = i < count ? Distance(i, microbatches) : 0;
    if (here == distance) continue;
    if (distance > 0 && (i - first) / distance >= kLeastPeriods - 1) {
      AddCandidate(first, i - first, distance, microbatches < 0, candidates);
    }
    first = i;
    distance = here;
  }
}

void ShortenedOrder::AddCandidate(int32_t first, int32_t length,
                                  int32_t distance, bool descending,
                                  std::vector<Candidate>* candidates) const {
  if (IsSecond(first)) ++first, --length;
  const int32_t num_periods = length / distance + 1;
  if (num_periods < kLeastPeriods) return;
  candidates->push_back(
      {{first, first + num_periods * distance, distance, descending}});
}

bool ShortenedOrder::IsNew(const Stretch& stretch) const {
  std::vector<size_t> cells;
  for (int32_t i = 0; i < stretch.period_actions; ++i) {
    const schedules::Action& action = actions_[stretch.first + i];
    if (action.num_microbatches > period_) return false;
    for (int k = 0; k < action.num_microbatches; ++k) {
      const size_t cell =
          Cell(action.op, LocalOf(action.stage), action.microbatch + k);
      if (classes_[cell].stretch >= 0) return false;
      cells.push_back(cell);
    }
  }
  std::sort(cells.begin(), cells.end());
  return std::adjacent_find(cells.begin(), cells.end()) == cells.end();
}

void ShortenedOrder::Take(const Stretch& stretch) {
  const int num_periods =
      (stretch.end - stretch.first) / stretch.period_actions;
  const int travel =
      (num_periods - 1) * (stretch.descending ? -period_ : period_);
  for (int32_t i = 0; i < stretch.period_actions; ++i) {
    const schedules::Action& action = actions_[stretch.first + i];
    for (int k = 0; k < action.num_microbatches; ++k) {
      const int microbatch = action.microbatch + k;
      classes_[Cell(action.op, LocalOf(action.stage), microbatch)] = {
          static_cast<int>(stretches_.size()), microbatch, microbatch + travel};
    }
  }
  stretches_.push_back(stretch);
}

bool ShortenedOrder::SortStretches() {
  std::vector<int> order(stretches_.size()), place(stretches_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return stretches_[a].first < stretches_[b].first;
  });
  std::vector<Stretch> sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<int>(i);
    sorted.push_back(stretches_[order[i]]);
    if (i > 0 && sorted[i - 1].end > sorted[i].first) return false;
  }
  for (PassClass& one : classes_) {
    if (one.stretch >= 0) one.stretch = place[one.stretch];
  }
  stretches_ = std::move(sorted);
  FillClasses();
  return !stretches_.empty();
}

void ShortenedOrder::FillClasses() {
  const std::vector<PassClass> found = classes_;
  const size_t row = classes_.size() / schedules::kNumScheduledOps;
  for (size_t i = 0; i < classes_.size(); ++i) {
    for (schedules::Op other :
         OthersLike(static_cast<schedules::Op>(i / row))) {
      if (classes_[i].stretch >= 0) break;
      classes_[i] = found[static_cast<size_t>(other) * row + i % row];
    }
  }
}

bool ShortenedOrder::CheckOrder() const {
  size_t next = 0;
  for (int32_t i = 0; i < std::ssize(actions_); ++i) {
    if (next < stretches_.size() && i == stretches_[next].first) {
      i = stretches_[next++].end - 1;
      continue;
    }
    const PassClass& one = ClassOf(actions_[i]);
    if (one.stretch < 0) return false;
    const Stretch& stretch = stretches_[one.stretch];
    const bool before = i < stretch.first;
    const int microbatch = actions_[i].microbatch;
    if (before == stretch.descending
            ? microbatch <= std::max(one.first_microbatch, one.last_microbatch)
            : microbatch >=
                  std::min(one.first_microbatch, one.last_microbatch)) {
      return false;
    }
  }
  return true;
}

}  // namespace weir::sim
