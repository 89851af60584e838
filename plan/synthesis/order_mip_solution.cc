// SPDX-License-Identifier: Apache-2.0
// Conversion between orders and solutions of OrderMip.
#include <algorithm>
#include <tuple>
#include <utility>

#include "plan/synthesis/order_mip.h"
#include "schedules/walk.h"

namespace weir::plan {

std::vector<double> OrderMip::StartOf(const PassRows& rows) const {
  std::vector<double> values(model_.variables.size(), 0);
  const schedules::Schedule schedule = table_.ScheduleOf(rows);
  const schedules::WalkTimes times =
      schedules::TimedWalk(schedule, problem_.costs);
  std::vector<double> position(table_.num_passes(), -1);
  for (int rank = 0; rank < problem_.num_ranks; ++rank) {
    for (size_t i = 0; i < rows.ranks[rank].size(); ++i) {
      const int32_t number = rows.ranks[rank][i];
      const bool whole =
          schedule.rank_actions[rank][i].op == schedules::Op::kBackward;
      position[number] = static_cast<double>(i);
      values[start_[number]] = times.start[rank][i] / unit_;
      if (!whole || whole_[number] < 0) continue;
      values[whole_[number]] = 1;
      values[start_[number + 1]] = times.end[rank][i] / unit_;
      position[number + 1] = static_cast<double>(i) + 0.5;
    }
    for (int32_t one : of_rank_[rank]) {
      for (int32_t other : of_rank_[rank]) {
        const int boolean = before_[rank][Cell(one, other)];
        if (one < other && boolean >= 0) {
          values[boolean] = position[one] < position[other];
        }
      }
    }
  }
  values[value_] =
      (problem_.objective == OrderObjective::kSpan ? times.span()
                                                   : times.makespan()) /
      unit_;
  return values;
}

schedules::Schedule OrderMip::ScheduleOf(
    const std::vector<double>& values) const {
  schedules::Schedule schedule = EmptyOrder(problem_, table_.route());
  const auto value = [&](const Sum& sum) {
    double total = sum.constant;
    for (const auto& [variable, factor] : sum.terms) {
      total += factor * values[variable];
    }
    return total;
  };
  for (int rank = 0; rank < problem_.num_ranks; ++rank) {
    // Passes are sorted by the booleans, which are exact; host transfers by
    // time, after the passes that have ended by then.
    std::vector<std::pair<double, int32_t>> sorted;
    for (int32_t one : of_rank_[rank]) {
      double place = 0;
      for (int32_t other : of_rank_[rank]) {
        if (other != one) place += value(Before(other, one));
      }
      sorted.emplace_back(place, one);
    }
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::tuple<double, int, schedules::Action>> transfers;
    for (size_t cell = 0; cell < moved_.size(); ++cell) {
      const int stage = static_cast<int>(cell) / problem_.num_microbatches;
      if (table_.route()[stage] != rank || values[moved_[cell]] < 0.5) continue;
      const int k = static_cast<int>(cell) % problem_.num_microbatches;
      transfers.emplace_back(
          values[offload_[cell]], 0,
          schedules::Action{schedules::Op::kOffload, stage, k});
      transfers.emplace_back(
          values[reload_[cell]], 1,
          schedules::Action{schedules::Op::kReload, stage, k});
    }
    std::sort(transfers.begin(), transfers.end(),
              [](const auto& one, const auto& other) {
                return std::tie(std::get<0>(one), std::get<1>(one)) <
                       std::tie(std::get<0>(other), std::get<1>(other));
              });
    std::vector<schedules::Action>& row = schedule.rank_actions[rank];
    size_t next = 0;
    for (const auto& [place, number] : sorted) {
      // A transfer waits for the pass before it, so it precedes the first pass
      // that has not ended when it starts.
      const double end = value(End(number));
      while (next < transfers.size() &&
             std::get<0>(transfers[next]) < end - kSlack) {
        row.push_back(std::get<2>(transfers[next++]));
      }
      const int32_t input = number - number % 3 + 1;
      const bool whole = !problem_.can_split ||
                         (whole_[input] >= 0 && values[whole_[input]] > 0.5);
      schedules::Op op = table_.pass(number);
      if (op == schedules::Op::kBackwardWeight && whole) continue;
      if (op == schedules::Op::kBackwardInput && whole) {
        op = schedules::Op::kBackward;
      }
      row.push_back({op, table_.stage(number), table_.microbatch(number)});
    }
    while (next < transfers.size()) {
      row.push_back(std::get<2>(transfers[next++]));
    }
  }
  return schedule;
}

}  // namespace weir::plan
