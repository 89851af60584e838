// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/order_mip.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weir::plan {
namespace {

constexpr int kYes = -2, kNo = -1;
// The horizon in the program's units, as CBC's tolerances are absolute.
constexpr double kHorizon = 100;

}  // namespace

OrderMip::Sum& OrderMip::Sum::Plus(const Sum& other, double factor) {
  constant += factor * other.constant;
  for (const auto& added : other.terms) {
    const auto at = std::find_if(
        terms.begin(), terms.end(),
        [&](const auto& term) { return term.first == added.first; });
    if (at == terms.end()) {
      terms.emplace_back(added.first, factor * added.second);
    } else {
      at->second += factor * added.second;
    }
  }
  return *this;
}

void OrderMip::AddAtLeast(const Sum& sum, double least) {
  if (sum.terms.empty()) return;
  model_.AddRow(sum.terms, least - sum.constant);
}

OrderMip::OrderMip(const PassTable& table, double least, double most)
    : table_(table), problem_(table.problem()) {
  double arrival = 0;  // the last rank's first forward, the origin of spans
  for (int stage = 0; stage < problem_.num_stages(); ++stage) {
    arrival += problem_.costs.of(stage).forward + problem_.costs.hop;
  }
  horizon_ =
      problem_.objective == OrderObjective::kSpan ? most + arrival : most;
  unit_ = horizon_ > 0 ? horizon_ / kHorizon : 1;
  horizon_ = kHorizon * (1 + kSlack);
  start_.assign(table_.num_passes(), -1);
  whole_.assign(table_.num_passes(), -1);
  place_in_rank_.assign(table_.num_passes(), -1);
  of_rank_.resize(problem_.num_ranks);
  for (int32_t number = 0; number < table_.num_passes(); ++number) {
    if (table_.pass(number) == schedules::Op::kBackwardWeight &&
        !problem_.can_split)
      continue;
    std::vector<int32_t>& passes = of_rank_[table_.rank(number)];
    place_in_rank_[number] = static_cast<int>(passes.size());
    passes.push_back(number);
  }
  FindWindows(most / unit_ * (1 + kSlack));
  AddTimes(least / unit_ * (1 - kSlack), most / unit_ * (1 + kSlack));
  AddOrders();
  AddMonotony();
  if (problem_.may_offload) {
    AddOffloads();
    for (int rank = 0; rank < problem_.num_ranks; ++rank) {
      AddOffloadMemory(rank);
    }
  } else if (std::isfinite(problem_.memory_limit)) {
    AddMemory();
  }
  for (const MipModel::Variable& variable : model_.variables) {
    num_booleans_ += variable.is_integer;
  }
}

// Returns true if `one` precedes `other` in every order, by microbatch and by
// the path through the stages and back.
bool OrderMip::Precedes(int32_t one, int32_t other) const {
  if (table_.microbatch(one) > table_.microbatch(other) || one == other) {
    return false;
  }
  const int last = 2 * problem_.num_stages() - 1;
  const auto place = [&](int32_t number) {
    return table_.pass(number) == schedules::Op::kForward
               ? table_.stage(number)
               : last - table_.stage(number);
  };
  if (table_.pass(one) == schedules::Op::kBackwardWeight) {
    return table_.pass(other) == schedules::Op::kBackwardWeight &&
           table_.stage(one) == table_.stage(other);
  }
  if (table_.pass(other) == schedules::Op::kBackwardWeight) {
    return place(one) <= place(other);  // same as for its I
  }
  return place(one) <= place(other);
}

// Computes when passes can start, from the dependencies that all orders share.
void OrderMip::FindWindows(double most) {
  const int n = table_.num_passes(), m = problem_.num_microbatches;
  earliest_.assign(n, 0);
  latest_.assign(n, 0);
  const auto least = [&](int32_t number) {
    const int stage = table_.stage(number);
    const schedules::StagePassCosts& costs = problem_.costs.of(stage);
    double seconds = table_.seconds(number);
    if (!problem_.can_split &&
        table_.pass(number) == schedules::Op::kBackwardInput) {
      seconds = costs.fused_backward();
    } else if (problem_.may_fuse(stage)) {
      if (table_.pass(number) == schedules::Op::kBackwardWeight) seconds = 0;
      if (table_.pass(number) == schedules::Op::kBackwardInput) {
        seconds = std::min(seconds, costs.fused_backward());
      }
    }
    return seconds / unit_;
  };
  std::vector<double> end_of_rank(problem_.num_ranks, most);
  if (problem_.objective == OrderObjective::kSpan) {
    double arrival = 0;
    std::vector<bool> seen(problem_.num_ranks, false);
    for (int stage = 0; stage < problem_.num_stages(); ++stage) {
      const int32_t f = table_.Number(stage, 0, schedules::Op::kForward);
      if (stage > 0) arrival += table_.hop_before(f) / unit_;
      const int rank = table_.route()[stage];
      if (!seen[rank]) end_of_rank[rank] = most + arrival;
      seen[rank] = true;
      arrival += problem_.costs.of(stage).forward / unit_;
    }
  }
  // For each microbatch, forwards by stage, then I and W by stage in reverse: a
  // topological order, which is reversed for the latest starts.
  std::vector<int32_t> sorted;
  const int s_end = problem_.num_stages();
  for (int k = 0; k < m; ++k) {
    for (int s = 0; s < s_end; ++s) {
      sorted.push_back(table_.Number(s, k, schedules::Op::kForward));
    }
    for (int s = s_end; s-- > 0;) {
      sorted.push_back(table_.Number(s, k, schedules::Op::kBackwardInput));
      sorted.push_back(table_.Number(s, k, schedules::Op::kBackwardWeight));
    }
  }
  const auto for_successors = [&](int32_t number, const auto& visit) {
    if (table_.after(number) >= 0) {
      visit(table_.after(number), table_.hop_before(table_.after(number)));
    }
    if (table_.microbatch(number) + 1 < m) visit(number + 3, 0.0);
    if (table_.pass(number) == schedules::Op::kForward) visit(number + 1, 0.0);
    if (table_.pass(number) == schedules::Op::kBackwardInput)
      visit(number + 1, 0.0);
  };
  for (int32_t number : sorted) {
    for_successors(number, [&](int32_t next, double hop) {
      earliest_[next] = std::max(
          earliest_[next], earliest_[number] + least(number) + hop / unit_);
    });
  }
  for (auto at = sorted.rbegin(); at != sorted.rend(); ++at) {
    double end = end_of_rank[table_.rank(*at)];
    for_successors(*at, [&](int32_t next, double hop) {
      end = std::min(end, latest_[next] - hop / unit_);
    });
    latest_[*at] = end - least(*at);
  }
}

OrderMip::Sum OrderMip::Seconds(int32_t number) const {
  const int stage = table_.stage(number);
  const double seconds = table_.seconds(number) / unit_;
  const double fused = table_.fused_seconds(stage) / unit_;
  if (table_.pass(number) == schedules::Op::kForward) return {{}, seconds};
  if (!problem_.can_split) return {{}, fused};
  const int32_t input = number - number % 3 + 1;
  if (whole_[input] < 0) return {{}, seconds};
  Sum sum = {{}, seconds};
  sum.Plus(Variable(whole_[input],
                    table_.pass(number) == schedules::Op::kBackwardInput
                        ? fused - seconds
                        : -seconds));
  return sum;
}

OrderMip::Sum OrderMip::End(int32_t number) const {
  Sum end = Start(number);
  return end.Plus(Seconds(number));
}

void OrderMip::AddTimes(double least, double most) {
  value_ = model_.AddVariable({least, most, false, 1});
  for (const std::vector<int32_t>& passes : of_rank_) {
    for (int32_t number : passes) {
      start_[number] = model_.AddVariable(
          {earliest_[number], std::max(earliest_[number], latest_[number]),
           false, 0});
    }
  }
  for (int32_t number = 1; number < table_.num_passes(); number += 3) {
    if (!problem_.can_split || !problem_.may_fuse(table_.stage(number))) {
      continue;
    }
    whole_[number] = model_.AddBoolean();
    // Nothing runs between the I and the W of a whole backward.
    AddUnless(End(number), Start(number + 1),
              Sum{{}, 1}.Plus(Variable(whole_[number], -1)));
  }
  for (const std::vector<int32_t>& passes : of_rank_) {
    // The span starts with the first forward, which nothing delays.
    double origin = earliest_[passes.front()];
    for (int32_t number : passes) {
      origin = std::min(origin, earliest_[number]);
    }
    if (problem_.objective == OrderObjective::kMakespan) origin = 0;
    for (int32_t number : passes) {
      AddAtLeast(Variable(value_).Plus(End(number), -1), -origin);
      if (table_.before(number) >= 0) {
        AddAtLeast(Start(number).Plus(End(table_.before(number)), -1),
                   table_.hop_before(number) / unit_);
      }
    }
  }
}

void OrderMip::AddUnless(const Sum& left, const Sum& right, const Sum& excuse) {
  Sum row = left;
  row.Plus(right, -1).Plus(excuse, 2 * horizon_);
  AddAtLeast(row, 0);
}

size_t OrderMip::Cell(int32_t one, int32_t other) const {
  return place_in_rank_[one] * of_rank_[table_.rank(one)].size() +
         place_in_rank_[other];
}

OrderMip::Sum OrderMip::Before(int32_t one, int32_t other) const {
  const std::vector<int>& cells = before_[table_.rank(one)];
  const int known = cells[Cell(one, other)];
  if (known == kYes) return {{}, 1};
  if (known == kNo) return {{}, 0};
  // One boolean for both directions, stored for the smaller number.
  if (one < other) return Variable(known);
  return Sum{{}, 1}.Plus(Variable(known, -1));
}

void OrderMip::AddOrders() {
  before_.resize(problem_.num_ranks);
  for (int rank = 0; rank < problem_.num_ranks; ++rank) {
    const std::vector<int32_t>& passes = of_rank_[rank];
    before_[rank].assign(passes.size() * passes.size(), kNo);
    for (int32_t one : passes) {
      for (int32_t other : passes) {
        if (one >= other) continue;
        int there = kNo, back = kNo;
        // The windows alone may determine the order.
        const auto cannot = [&](int32_t a, int32_t b) {
          return earliest_[a] +
                     Seconds(a).constant * !problem_.may_fuse(table_.stage(a)) >
                 latest_[b] + kSlack;
        };
        if (Precedes(one, other) || cannot(other, one)) {
          there = kYes;
        } else if (Precedes(other, one) || cannot(one, other)) {
          back = kYes;
        } else {
          there = back = model_.AddBoolean();
        }
        before_[rank][Cell(one, other)] = there;
        before_[rank][Cell(other, one)] = back;
      }
    }
    for (int32_t one : passes) {
      for (int32_t other : passes) {
        if (one == other) continue;
        const Sum before = Before(one, other);
        if (before.terms.empty() && before.constant == 0) continue;
        // start(other) >= end(one) if `one` is first; else the row is relaxed
        // by the most that the windows allow it to be violated.
        Sum row = Start(other);
        row.Plus(End(one), -1);
        if (!before.terms.empty()) {
          const double longest = std::max(
              {0.0, Seconds(one).constant,
               table_.fused_seconds(table_.stage(one)) / unit_ *
                   (table_.pass(one) == schedules::Op::kBackwardInput)});
          const double missed =
              std::max(0.0, latest_[one] + longest - earliest_[other]);
          row.Plus({{}, missed}).Plus(before, -missed);
        }
        AddAtLeast(row, 0);
      }
    }
  }
}

// If a pass is before another, it is also before that kind's next microbatch,
// and its own kind's previous microbatch is before the other.
void OrderMip::AddMonotony() {
  const int m = problem_.num_microbatches;
  for (const std::vector<int32_t>& passes : of_rank_) {
    for (int32_t one : passes) {
      for (int32_t other : passes) {
        if (one == other) continue;
        const Sum before = Before(one, other);
        if (before.terms.empty()) continue;
        if (table_.microbatch(other) + 1 < m) {
          const Sum next = Before(one, other + 3);
          if (!next.terms.empty()) {
            AddAtLeast(Sum(next).Plus(before, -1), 0);
          }
        }
        if (table_.microbatch(one) > 0) {
          const Sum last = Before(one - 3, other);
          if (!last.terms.empty()) {
            AddAtLeast(Sum(last).Plus(before, -1), 0);
          }
        }
      }
    }
  }
}

void OrderMip::AddMemory() {
  const double unit = HeldByMicrobatch(problem_);
  if (!(unit > 0)) return;
  for (const std::vector<int32_t>& passes : of_rank_) {
    for (int32_t number : passes) {
      if (!(table_.held(number) > 0)) continue;
      Sum held = {{}, table_.held(number) / unit};
      for (int32_t other : passes) {
        if (other == number) continue;
        double change = table_.held(other);
        if (!problem_.can_split &&
            table_.pass(other) == schedules::Op::kBackwardInput) {
          change += table_.held(other + 1);  // and its W
        }
        held.Plus(Before(other, number), change / unit);
      }
      const double limit = problem_.memory_limit / unit * (1 + 1e-9);
      if (!held.terms.empty()) {
        model_.AddRow(held.terms, -kInfinity, limit - held.constant);
      } else if (held.constant > limit) {
        model_.AddRow({{value_, 1}}, -kInfinity, -1);  // nothing fits
      }
    }
  }
}

}  // namespace weir::plan
