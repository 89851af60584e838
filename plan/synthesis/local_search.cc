// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/local_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "plan/synthesis/order_clock.h"
#include "plan/synthesis/order_problem.h"
#include "plan/synthesis/search_random.h"
#include "plan/synthesis/search_threshold.h"

namespace weir::plan {
namespace {

class LocalSearch {
 public:
  LocalSearch(const PassTable& table, const PassRows& start,
              const LocalSearchOptions& options)
      : table_(table),
        options_(options),
        random_(options.seed),
        clock_(table),
        rows_(start),
        limit_(table.problem().memory_limit * (1 + kRounding)) {
    MarkFused();
    clock_.Try(rows_, 0);
    clock_.Keep();
    cost_ = Cost();
    best_ = {rows_, Value(), 0, 0};
  }

  LocalSearchResult Run() {
    const double mean_seconds = MeanSeconds();
    int64_t move = 0;
    for (; move < options_.num_moves &&
           best_.value > options_.enough * (1 + kRounding) &&
           !options_.Stops(move);
         ++move) {
      threshold_ = ThresholdAt(mean_seconds, move, options_.num_moves);
      const int kind = random_.Below(8);
      if (can_fuse_ && kind == 0) {
        JoinOrPart();
      } else if (kind == 1) {
        MoveTogether();
      } else if (kind < 4) {
        MoveFar();
      } else {
        MoveOne();
      }
    }
    best_.num_moves = move;
    best_.num_accepted = num_accepted_;
    return best_;
  }

 private:
  void MarkFused() {
    std::vector<bool> has_weight(table_.num_passes() / 3, false);
    for (const std::vector<int32_t>& row : rows_.ranks) {
      for (int32_t number : row) {
        if (table_.pass(number) == schedules::Op::kBackwardWeight)
          has_weight[number / 3] = true;
      }
    }
    for (int32_t number = 0; number < table_.num_passes(); number += 3) {
      clock_.SetFused(number, !has_weight[number / 3]);
      can_fuse_ |= table_.problem().can_split &&
                   table_.problem().may_fuse(table_.stage(number));
    }
  }

  double MeanSeconds() const {
    double sum = 0;
    for (int32_t number = 0; number < table_.num_passes(); ++number) {
      sum += table_.seconds(number);
    }
    return sum / table_.num_passes();
  }

  double Value() const {
    return table_.problem().objective == OrderObjective::kSpan
               ? clock_.span()
               : clock_.makespan();
  }
  double Cost() const {
    return Value() +
           kWeightOfMeans * clock_.sum_of_ends() / table_.problem().num_ranks;
  }

  // Returns true if `number` may overtake `other`: not passes of its stage with
  // the same kind or microbatch.
  bool MayPass(int32_t number, int32_t other) const {
    if (table_.stage(number) != table_.stage(other)) return true;
    return table_.pass(number) != table_.pass(other) &&
           table_.microbatch(number) != table_.microbatch(other);
  }

  double HeldBy(int32_t number) const {
    if (table_.pass(number) == schedules::Op::kBackwardInput &&
        clock_.is_fused(number)) {
      const int32_t weight = number + 1;
      return table_.held(number) + table_.held(weight);
    }
    return table_.held(number);
  }

  // Returns true if the rank stays within its limit.
  bool Fits(int rank) const {
    if (!std::isfinite(limit_)) return true;
    double held = 0;
    for (int32_t number : rows_.ranks[rank]) {
      // A whole backward holds as much as its I and W.
      if (held + table_.held(number) > limit_) return false;
      held += HeldBy(number);
    }
    return true;
  }

  // Accepts the changed ranks, or reverts them with `undo`.
  template <typename Undo>
  void Judge(absl::Span<const int> ranks, double since, const Undo& undo) {
    const double most = cost_ + threshold_;
    if (absl::c_all_of(ranks, [&](int rank) { return Fits(rank); }) &&
        clock_.Try(rows_, since, MostMakespan(most)) && Cost() <= most) {
      clock_.Keep();
      cost_ = Cost();
      ++num_accepted_;
      if (Value() < best_.value * (1 - kRounding)) {
        best_.value = Value();
        best_.rows = rows_;
      }
      return;
    }
    undo();
  }

  // Returns a makespan above which no order costs at most `most`.
  double MostMakespan(double most) const {
    return table_.problem().objective == OrderObjective::kSpan
               ? std::numeric_limits<double>::infinity()
               : most;
  }

  // Returns the place that a pass reaches along the row: at most `most` steps,
  // up to a pass that it may not overtake.
  int Target(const std::vector<int32_t>& row, int from, int step,
             int most) const {
    const int size = static_cast<int>(row.size());
    int to = from;
    while (std::abs(to - from) < most && to + step >= 0 && to + step < size &&
           MayPass(row[from], row[to + step])) {
      to += step;
    }
    return to;
  }

  static void Move(int from, int to, std::vector<int32_t>* row) {
    const auto begin = row->begin();
    if (from < to) {
      std::rotate(begin + from, begin + from + 1, begin + to + 1);
    } else {
      std::rotate(begin + to, begin + from, begin + from + 1);
    }
  }

  // Returns a random distance, mostly short.
  int Distance() { return 1 + random_.Below(1 << random_.Below(6)); }
  int Step() { return random_.Below(2) == 0 ? -1 : 1; }

  void MoveOne() {
    const int rank = random_.Below(table_.problem().num_ranks);
    std::vector<int32_t>& row = rows_.ranks[rank];
    const int from = random_.Below(static_cast<int>(row.size()));
    const int most = Distance();
    const int to = Target(row, from, Step(), most);
    if (to == from) return;
    const double since = clock_.kept_start(row[std::min(from, to)]);
    Move(from, to, &row);
    Judge({rank}, since, [&] { Move(to, from, &row); });
  }

  // Moves a microbatch's pass on several consecutive stages: an earlier pass on
  // one rank helps only if its neighbors follow.
  void MoveTogether() {
    const int32_t first = random_.Below(table_.num_passes());
    const int stages =
        std::min(2 + random_.Below(table_.problem().num_stages()),
                 table_.problem().num_stages() - table_.stage(first));
    const int most = Distance(), step = Step();
    struct Moved {
      int rank, from, to;
    };
    std::vector<Moved> moved;
    double since = std::numeric_limits<double>::infinity();
    for (int i = 0; i < stages; ++i) {
      const int32_t number =
          table_.Number(table_.stage(first) + i, table_.microbatch(first),
                        table_.pass(first));
      const int rank = table_.rank(number);
      std::vector<int32_t>& row = rows_.ranks[rank];
      const int from = static_cast<int>(
          std::find(row.begin(), row.end(), number) - row.begin());
      if (from == std::ssize(row)) continue;
      const int to = Target(row, from, step, most);
      if (to == from) continue;
      since = std::min(since, clock_.kept_start(row[std::min(from, to)]));
      Move(from, to, &row);
      moved.push_back({rank, from, to});
    }
    if (moved.empty()) return;
    std::vector<int> ranks;
    for (const Moved& one : moved) ranks.push_back(one.rank);
    Judge(ranks, since, [&] {
      for (auto one = moved.rbegin(); one != moved.rend(); ++one) {
        Move(one->to, one->from, &rows_.ranks[one->rank]);
      }
    });
  }

  // Moves a pass past others of its kind, which are numbered again by
  // microbatch.
  void MoveFar() {
    const int rank = random_.Below(table_.problem().num_ranks);
    std::vector<int32_t>& row = rows_.ranks[rank];
    const int size = static_cast<int>(row.size());
    const int from = random_.Below(size);
    const int to = std::clamp(from + Step() * Distance(), 0, size - 1);
    const int stage = table_.stage(row[from]);
    if (to == from || (can_fuse_ && table_.problem().may_fuse(stage))) return;
    const double since = clock_.kept_start(row[std::min(from, to)]);
    const std::vector<int32_t> old = row;
    Move(from, to, &row);
    std::array<int, 3> next = {0, 0, 0};  // by PassIndex
    for (int32_t& number : row) {
      if (table_.stage(number) != stage) continue;
      const schedules::Op pass = table_.pass(number);
      const int32_t index = PassIndex(pass);
      const int k = next[index]++;
      const bool is_early = index > 0 && k >= next[index - 1];
      if (is_early) {
        row = old;
        return;
      }
      number = table_.Number(stage, k, pass);
    }
    Judge({rank}, since, [&] { row = old; });
  }

  // Fuses an I and its W into a whole backward, or splits one.
  void JoinOrPart() {
    const int rank = random_.Below(table_.problem().num_ranks);
    std::vector<int32_t>& row = rows_.ranks[rank];
    const int at = random_.Below(static_cast<int>(row.size()));
    const int32_t number = row[at];
    if (table_.pass(number) != schedules::Op::kBackwardInput ||
        !table_.problem().may_fuse(table_.stage(number))) {
      return;
    }
    const double since = clock_.kept_start(number);
    const std::vector<int32_t> old = row;
    const bool was_fused = clock_.is_fused(number);
    if (was_fused) {
      clock_.Forget(number + 1);
      row.insert(row.begin() + at + 1, number + 1);
    } else {
      row.erase(std::find(row.begin() + at, row.end(), number + 1));
    }
    clock_.SetFused(number, !was_fused);
    Judge({rank}, since, [&] {
      row = old;
      clock_.SetFused(number, was_fused);
    });
  }

  const PassTable& table_;
  const LocalSearchOptions& options_;
  SearchRandom random_;
  OrderClock clock_;
  PassRows rows_;
  double limit_;
  bool can_fuse_ = false;
  double cost_ = 0, threshold_ = 0;
  int64_t num_accepted_ = 0;
  LocalSearchResult best_;
};

}  // namespace

LocalSearchResult SearchLocally(const PassTable& table, const PassRows& start,
                                const LocalSearchOptions& options) {
  return LocalSearch(table, start, options).Run();
}

}  // namespace weir::plan
