// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/local_search.h"

#include <algorithm>
#include <cmath>

#include "plan/synthesis/order_clock.h"

namespace weir {
namespace {

// SplitMix64 (Steele et al., 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // 0 to n-1.
  int Below(int n) {
    return static_cast<int>(((Next() >> 32) * static_cast<uint64_t>(n)) >> 32);
  }

 private:
  uint64_t state_;
};

// Beside the objective what all ranks take counts a little: most moves leave
// the slowest rank as it is, and one that frees another helps later.
constexpr double kWeightOfMeans = 0.05;
// The first threshold, in passes of mean length.
constexpr double kFirstThreshold = 0.6;
constexpr double kRounding = 1e-9;

class Search {
 public:
  Search(const PassTable& table, const PassRows& start,
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
    const double first = kFirstThreshold * MeanSeconds();
    int64_t move = 0;
    for (; move < options_.num_moves &&
           best_.value > options_.enough * (1 + kRounding);
         ++move) {
      const double left = 1 - static_cast<double>(move) /
                                  static_cast<double>(options_.num_moves);
      threshold_ = first * left * left;
      if (can_fuse_ && random_.Below(8) == 0) {
        JoinOrPart();
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
        if (table_.pass(number) == Pass::kWeight) has_weight[number / 3] = true;
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

  // How far `number` may be moved past `other`: not past its own stage's passes
  // of the same kind, nor its own microbatch's.
  bool MayPass(int32_t number, int32_t other) const {
    if (table_.stage(number) != table_.stage(other)) return true;
    return table_.pass(number) != table_.pass(other) &&
           table_.microbatch(number) != table_.microbatch(other);
  }

  double HeldBy(int32_t number) const {
    if (table_.pass(number) == Pass::kInput && clock_.is_fused(number)) {
      const int32_t weight = number + 1;
      return table_.held(number) + table_.held(weight);
    }
    return table_.held(number);
  }

  // Whether the rank stays within its limit; only from `first` on can it not.
  bool Fits(int rank) const {
    if (!std::isfinite(limit_)) return true;
    double held = 0;
    for (int32_t number : rows_.ranks[rank]) {
      // A whole backward holds what its I and W would.
      if (held + table_.held(number) > limit_) return false;
      held += HeldBy(number);
    }
    return true;
  }

  // Takes the changed rank or puts `undo` back.
  template <typename Undo>
  void Judge(int rank, double since, const Undo& undo) {
    const double most = cost_ + threshold_;
    if (Fits(rank) && clock_.Try(rows_, since, MostMakespan(most)) &&
        Cost() <= most) {
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

  // No makespan above it can cost at most `most`.
  double MostMakespan(double most) const {
    return table_.problem().objective == OrderObjective::kSpan
               ? std::numeric_limits<double>::infinity()
               : most;
  }

  void MoveOne() {
    const int rank = random_.Below(table_.problem().num_ranks);
    std::vector<int32_t>& row = rows_.ranks[rank];
    const int size = static_cast<int>(row.size());
    if (size < 2) return;
    const int from = random_.Below(size);
    const int32_t number = row[from];
    // Mostly near, sometimes far.
    const int far = 1 << random_.Below(6);
    const int most = 1 + random_.Below(far);
    const int step = random_.Below(2) == 0 ? -1 : 1;
    int to = from;
    while (std::abs(to - from) < most && to + step >= 0 && to + step < size &&
           MayPass(number, row[to + step])) {
      to += step;
    }
    if (to == from) return;
    const double since = clock_.kept_start(row[std::min(from, to)]);
    const auto move = [&row](int at, int target) {
      if (at < target) {
        std::rotate(row.begin() + at, row.begin() + at + 1,
                    row.begin() + target + 1);
      } else {
        std::rotate(row.begin() + target, row.begin() + at,
                    row.begin() + at + 1);
      }
    };
    move(from, to);
    Judge(rank, since, [&] { move(to, from); });
  }

  // Makes an I with its W a whole backward, or the other way round.
  void JoinOrPart() {
    const int rank = random_.Below(table_.problem().num_ranks);
    std::vector<int32_t>& row = rows_.ranks[rank];
    const int at = random_.Below(static_cast<int>(row.size()));
    const int32_t number = row[at];
    if (table_.pass(number) != Pass::kInput ||
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
    Judge(rank, since, [&] {
      row = old;
      clock_.SetFused(number, was_fused);
    });
  }

  const PassTable& table_;
  const LocalSearchOptions& options_;
  Random random_;
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
  return Search(table, start, options).Run();
}

}  // namespace weir
