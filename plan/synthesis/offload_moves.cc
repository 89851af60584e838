// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/offload_moves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "plan/synthesis/order_problem.h"
#include "plan/synthesis/search_random.h"
#include "plan/synthesis/search_threshold.h"

namespace weir::plan {
namespace {

class OffloadSearch {
 public:
  OffloadSearch(const PassTable& table, const OffloadRows& start,
                const LocalSearchOptions& options)
      : table_(table),
        problem_(table.problem()),
        options_(options),
        random_(options.seed),
        clock_(table),
        rows_(start),
        limit_(problem_.memory_limit * (1 + kRounding)) {
    for (int32_t number = 0; number < table.num_passes(); ++number) {
      mean_seconds_ += table.seconds(number) / table.num_passes();
    }
    clock_.Try(rows_, limit_, std::numeric_limits<double>::infinity());
    cost_ = Cost();
    best_ = {rows_, Value(), 0};
  }

  OffloadSearchResult Run() {
    int64_t move = 0;
    for (; move < options_.num_moves &&
           best_.value > options_.enough * (1 + kRounding) &&
           !options_.Stops(move);
         ++move) {
      threshold_ = ThresholdAt(mean_seconds_, move, options_.num_moves);
      const int kind = random_.Below(64);
      const int num_ranks =
          random_.Below(6) == 0 ? 2 + random_.Below(problem_.num_ranks) : 1;
      if (kind == 0) {
        ChangeRoom();
      } else if (kind < 8) {
        SendOrKeep(num_ranks);
      } else {
        MoveSome(num_ranks);
      }
    }
    best_.num_moves = move;
    return best_;
  }

 private:
  double Value() const {
    return problem_.objective == OrderObjective::kSpan ? clock_.span()
                                                       : clock_.makespan();
  }
  double Cost() const {
    return Value() + kWeightOfMeans * clock_.sum_of_ends() / problem_.num_ranks;
  }

  template <typename Undo>
  void Judge(const Undo& undo) {
    const double most = cost_ + threshold_;
    const bool span = problem_.objective == OrderObjective::kSpan;
    if (!clock_.Try(rows_, limit_,
                    span ? std::numeric_limits<double>::infinity() : most) ||
        Cost() > most) {
      undo();
      return;
    }
    cost_ = Cost();
    if (Value() < best_.value * (1 - kRounding)) {
      best_.value = Value();
      best_.rows = rows_;
    }
  }

  // Returns 0 for F, 1 for I, 2 for W, 3 for a reload.
  int KindOf(int32_t number) const {
    return IsReload(table_, number) ? 3 : number % 3;
  }
  int32_t CellOf(int32_t number) const {
    return IsReload(table_, number) ? number - table_.num_passes() : number / 3;
  }
  // Does not compare stages, as each rank has one.
  bool MayPass(int32_t number, int32_t other) const {
    return KindOf(number) != KindOf(other) && CellOf(number) != CellOf(other);
  }

  // Moves along the row by at most `most` steps, up to a pass that it may not
  // overtake.
  void Move(int from, int step, int most, std::vector<int32_t>* row) const {
    const int size = static_cast<int>(row->size());
    for (int to = from + step; most-- > 0 && to >= 0 && to < size &&
                               MayPass((*row)[to - step], (*row)[to]);
         to += step) {
      std::swap((*row)[to - step], (*row)[to]);
    }
  }

  // Moves a random pass or reload on one rank or on several consecutive ones:
  // an earlier pass on one rank helps only if its neighbors follow.
  void MoveSome(int num_ranks) {
    const int first = random_.Below(problem_.num_ranks);
    const int end = std::min(first + num_ranks, problem_.num_ranks);
    const std::vector<int32_t>& row = rows_.ranks[first];
    const int32_t number = row[random_.Below(static_cast<int>(row.size()))];
    const int most = 1 + random_.Below(1 << random_.Below(6));
    const int step = random_.Below(2) == 0 ? -1 : 1;
    Change(first, end, [&](int rank, std::vector<int32_t>* row) {
      const int32_t there = OnRank(number, rank - first);
      const auto at = std::find(row->begin(), row->end(), there);
      if (at == row->end()) return;
      Move(static_cast<int>(at - row->begin()), step, most, row);
    });
  }

  // Returns the number for the same microbatch `stages` stages later.
  int32_t OnRank(int32_t number, int stages) const {
    return number + stages * problem_.num_microbatches *
                        (IsReload(table_, number) ? 1 : 3);
  }

  // Keeps a microbatch on the ranks if the first of them offloads it, else
  // offloads it on all of them.
  void SendOrKeep(int num_ranks) {
    const int first = random_.Below(problem_.num_ranks);
    const int end = std::min(first + num_ranks, problem_.num_ranks);
    const int32_t reload = table_.num_passes() +
                           first * problem_.num_microbatches +
                           random_.Below(problem_.num_microbatches);
    const std::vector<int32_t>& row = rows_.ranks[first];
    const bool stays = std::find(row.begin(), row.end(), reload) == row.end();
    Change(first, end, [&](int rank, std::vector<int32_t>* row) {
      const int32_t there = OnRank(reload, rank - first);
      const auto at = std::find(row->begin(), row->end(), there);
      if (at != row->end() && !stays) row->erase(at);
      if (at == row->end() && stays) Insert(there, row);
    });
  }

  template <typename ChangeRow>
  void Change(int first, int end, const ChangeRow& change) {
    old_.assign(rows_.ranks.begin() + first, rows_.ranks.begin() + end);
    for (int rank = first; rank < end; ++rank) {
      change(rank, &rows_.ranks[rank]);
    }
    if (std::equal(old_.begin(), old_.end(), rows_.ranks.begin() + first)) {
      return;
    }
    Judge([&] {
      std::copy(old_.begin(), old_.end(), rows_.ranks.begin() + first);
    });
  }

  // Inserts a reload after its forward and the reloads of earlier microbatches,
  // and before its gradient and the reloads of later ones; mostly not much
  // earlier than needed.
  void Insert(int32_t reload, std::vector<int32_t>* row) {
    const int32_t forward = ForwardOf(table_, reload);
    int first = 0, last = -1;
    for (int i = 0; i < std::ssize(*row); ++i) {
      const int32_t number = (*row)[i];
      if (number == forward || (IsReload(table_, number) && number < reload)) {
        first = i + 1;
      }
      const bool ends = number == forward + 1 ||
                        (IsReload(table_, number) && number > reload);
      if (ends && last < 0) last = i;
    }
    if (last < first) return;
    const int ahead = random_.Below(1 << random_.Below(5));
    row->insert(row->begin() + std::max(first, last - ahead), reload);
  }

  void ChangeRoom() {
    const int old = rows_.resident_activations;
    rows_.resident_activations =
        std::max(0, old + (random_.Below(2) == 0 ? -1 : 1));
    Judge([&] { rows_.resident_activations = old; });
  }

  const PassTable& table_;
  const OrderProblem& problem_;
  const LocalSearchOptions& options_;
  SearchRandom random_;
  OffloadClock clock_;
  OffloadRows rows_;
  std::vector<std::vector<int32_t>> old_;
  double limit_;
  double mean_seconds_ = 0, cost_ = 0, threshold_ = 0;
  OffloadSearchResult best_;
};

}  // namespace

OffloadSearchResult SearchOffloads(const PassTable& table,
                                   const OffloadRows& start,
                                   const LocalSearchOptions& options) {
  return OffloadSearch(table, start, options).Run();
}

}  // namespace weir::plan
