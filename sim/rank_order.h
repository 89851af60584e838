// SPDX-License-Identifier: Apache-2.0
// Where the order of one rank repeats: its stretches (steady.h).
#ifndef WEIR_SIM_RANK_ORDER_H_
#define WEIR_SIM_RANK_ORDER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "schedules/schedule.h"
#include "sim/lanes.h"
#include "sim/steady.h"

namespace weir {

// A stretch of fewer periods may as well be by chance.
inline constexpr int kLeastPeriods = 3;

// Passes of one kind and stage, by microbatch modulo the period, on one rank.
struct PassClass {
  int stretch = -1;
  int32_t first_microbatch = 0, last_microbatch = 0;  // in the stretch
};

// One rank's order.
class RankOrder {
 public:
  // `stages` are StagesOf(rank).
  RankOrder(const Schedule& schedule, int rank, std::vector<int> stages);

  const std::vector<Stretch>& stretches() const { return stretches_; }

  // To be called before MayRepeat. FindStretches calls it, too.
  void ListPositions();
  // Frees what ListPositions made, more than the order itself. What
  // FindStretches has found stays.
  void ForgetPositions();

  // Do the actions from `position` on come again a period later, or did they
  // before? All of a period, and more than may be by chance.
  bool MayRepeat(int32_t position, int period) const;

  // Finds stretches in which every class of passes is exactly once, one
  // ascending or descending run of it.
  bool FindStretches(int period);

  const PassClass& ClassOf(const Action& action) const;
  // Of other passes; null: none of them is on this rank.
  const PassClass* Find(Op op, int stage, int microbatch) const;

 private:
  struct Candidate;

  // The index of the rank's stage, -1: it is not here.
  int LocalOf(int stage) const;
  size_t PositionCell(const Action& action, int microbatch) const;
  size_t Cell(Op op, int local, int microbatch) const;
  size_t Cell(const Action& action) const;

  // Of an overlapped pair.
  bool IsSecond(int32_t position) const;

  // Is the one at `other` the same so many microbatches later?
  bool IsCopy(int32_t position, int32_t other, int microbatches) const;

  // To the same action so many microbatches later, 0 if there is none.
  int32_t Distance(int32_t position, int microbatches) const;

  // The longest come first.
  bool Choose(std::vector<Candidate> candidates);

  bool RepeatsFrom(int32_t position, int microbatches) const;

  void AddCandidates(int microbatches, std::vector<Candidate>* candidates);

  // `length` actions that come again `distance` later. Pairs stay together.
  void AddCandidate(int32_t first, int32_t length, int32_t distance,
                    bool descending, std::vector<Candidate>* candidates) const;

  // No class of its first period is in another stretch, nor twice in this one.
  bool IsNew(const Stretch& stretch) const;

  void Take(const Stretch& stretch);

  // By position; they may not overlap.
  bool SortStretches();

  void FillClasses();

  // Outside its stretch a class goes on in the same direction.
  bool CheckOrder() const;

  const Schedule& schedule_;
  const Lanes lanes_;
  const std::vector<Action>& actions_;
  const std::vector<int> stages_;
  // [op]: where its part of positions_ begins, -1: the rank has no such action.
  std::array<int64_t, kNumOps> first_row_;
  // [stage of the rank][microbatch], -1: no action begins with it.
  std::vector<int32_t> positions_;
  int period_ = 1;
  std::vector<PassClass> classes_;  // [op][stage of the rank][microbatch % P]
  std::vector<Stretch> stretches_;
};

}  // namespace weir

#endif  // WEIR_SIM_RANK_ORDER_H_
