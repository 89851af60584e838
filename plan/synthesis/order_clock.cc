// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/order_clock.h"

#include <algorithm>

namespace weir::plan {

OrderClock::OrderClock(const PassTable& table)
    : table_(table),
      fused_(table.num_passes() / 3, false),
      start_(table.num_passes(), std::numeric_limits<double>::infinity()),
      end_(table.num_passes()),
      trial_start_(table.num_passes()),
      trial_end_(table.num_passes()),
      stamp_(table.num_passes(), 0),
      next_(table.problem().num_ranks),
      free_(table.problem().num_ranks),
      first_(table.problem().num_ranks) {}

bool OrderClock::RunRank(const PassRows& rows, int rank, double since,
                         double most) {
  const std::vector<int32_t>& row = rows.ranks[rank];
  int& next = next_[rank];
  double& free = free_[rank];
  for (; next < std::ssize(row); ++next) {
    const int32_t number = row[next];
    double start = free;
    const int32_t before = table_.before(number);
    if (before >= 0) {
      double end = 0;
      if (stamp_[before] == trial_) {
        end = trial_end_[before];
      } else if (start_[before] < since) {
        end = end_[before];
      } else {
        return true;  // not timed yet; that pass wakes this rank
      }
      start = std::max(start, end + table_.hop_before(number));
    }
    if (next == 0) first_[rank] = start;
    free = start + Seconds(number);
    if (free + table_.tail(number) > most) return false;
    trial_start_[number] = start;
    trial_end_[number] = free;
    stamp_[number] = trial_;
    timed_.push_back(number);
    const int32_t after = table_.after(number);
    if (after >= 0 && table_.rank(after) != rank) {
      ready_.push_back(table_.rank(after));
    }
  }
  return true;
}

bool OrderClock::Try(const PassRows& rows, double since, double most) {
  ++trial_;
  timed_.clear();
  ready_.clear();
  const int num_ranks = table_.problem().num_ranks;
  for (int rank = num_ranks; rank-- > 0;) {
    // Passes that start before `since` wait only for such passes.
    const std::vector<int32_t>& row = rows.ranks[rank];
    next_[rank] =
        static_cast<int>(std::partition_point(row.begin(), row.end(),
                                              [&](int32_t number) {
                                                return start_[number] < since;
                                              }) -
                         row.begin());
    free_[rank] = next_[rank] == 0 ? 0 : end_[row[next_[rank] - 1]];
    first_[rank] = row.empty() || next_[rank] == 0 ? 0 : start_[row[0]];
    ready_.push_back(rank);
  }
  while (!ready_.empty()) {
    const int rank = ready_.back();
    ready_.pop_back();
    if (!RunRank(rows, rank, since, most)) return false;
  }
  for (int rank = 0; rank < num_ranks; ++rank) {
    if (next_[rank] < std::ssize(rows.ranks[rank])) return false;
  }
  return true;
}

double OrderClock::makespan() const {
  return *std::max_element(free_.begin(), free_.end());
}

double OrderClock::span() const {
  double longest = 0;
  for (size_t rank = 0; rank < free_.size(); ++rank) {
    longest = std::max(longest, free_[rank] - first_[rank]);
  }
  return longest;
}

double OrderClock::sum_of_ends() const {
  double sum = 0;
  for (double end : free_) sum += end;
  return sum;
}

void OrderClock::Keep() {
  for (int32_t number : timed_) {
    start_[number] = trial_start_[number];
    end_[number] = trial_end_[number];
  }
}

}  // namespace weir::plan
