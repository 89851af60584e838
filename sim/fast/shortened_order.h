// SPDX-License-Identifier: Apache-2.0
// Finds where the order of one rank repeats: its stretches (steady.h).
#ifndef WEIR_SIM_FAST_SHORTENED_ORDER_H_
#define WEIR_SIM_FAST_SHORTENED_ORDER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "schedules/schedule.h"
#include "sim/fast/lanes.h"
#include "sim/fast/steady.h"

namespace weir::sim {

// A stretch of fewer periods may be a coincidence.
inline constexpr int kLeastPeriods = 3;

// Passes of one kind and stage on one rank, by microbatch modulo the period.
struct PassClass {
  int stretch = -1;
  int32_t first_microbatch = 0, last_microbatch = 0;  // in the stretch
};

// The order of one rank.
class ShortenedOrder {
 public:
  // `stages` must be StagesOf(rank).
  ShortenedOrder(const schedules::Schedule& schedule, int rank,
                 std::vector<int> stages);

  const std::vector<Stretch>& stretches() const { return stretches_; }

  // Must be called before MayRepeat. FindStretches calls it, too.
  void ListPositions();
  // Frees the memory of ListPositions, which exceeds that of the order. The
  // results of FindStretches remain.
  void ForgetPositions();

  // Returns true if the actions from `position` on recur one period later or
  // earlier: a full period, and more than may be a coincidence.
  bool MayRepeat(int32_t position, int period) const;

  // Finds stretches that contain every class of passes exactly once, as one
  // ascending or descending run.
  bool FindStretches(int period);

  const PassClass& ClassOf(const schedules::Action& action) const;
  // Returns the class of other passes; null if this rank has none of them.
  const PassClass* Find(schedules::Op op, int stage, int microbatch) const;

 private:
  struct Candidate;

  // Returns the index among the rank's stages; -1: not on this rank.
  int LocalOf(int stage) const;
  size_t PositionCell(const schedules::Action& action, int microbatch) const;
  size_t Cell(schedules::Op op, int local, int microbatch) const;
  size_t Cell(const schedules::Action& action) const;

  // Returns true for the second action of an overlapped pair.
  bool IsSecond(int32_t position) const;

  // Returns true if the action at `other` is the same, `microbatches` later.
  bool IsCopy(int32_t position, int32_t other, int microbatches) const;

  // Returns the distance to the same action `microbatches` later; 0: none.
  int32_t Distance(int32_t position, int microbatches) const;

  // Chooses stretches, the longest first.
  bool Choose(std::vector<Candidate> candidates);

  bool RepeatsFrom(int32_t position, int microbatches) const;

  void AddCandidates(int microbatches, std::vector<Candidate>* candidates);

  // Adds `length` actions that recur `distance` later. Keeps pairs together.
  void AddCandidate(int32_t first, int32_t length, int32_t distance,
                    bool descending, std::vector<Candidate>* candidates) const;

  // Returns true if no class of its first period is in another stretch or
  // occurs twice in this one.
  bool IsNew(const Stretch& stretch) const;

  void Take(const Stretch& stretch);

  // Sorts by position. Returns false if stretches overlap or there are none.
  bool SortStretches();

  void FillClasses();

  // Returns true if each class continues in the same direction outside its
  // stretch.
  bool CheckOrder() const;

  const schedules::Schedule& schedule_;
  const Lanes lanes_;
  const std::vector<schedules::Action>& actions_;
  const std::vector<int> stages_;
  // [op]: start of its part of positions_; -1: the rank has no such action.
  std::array<int64_t, schedules::kNumScheduledOps> first_row_;
  // [stage of the rank][microbatch]; -1: no action begins with it.
  std::vector<int32_t> positions_;
  int period_ = 1;
  std::vector<PassClass> classes_;  // [op][stage of the rank][microbatch % P]
  std::vector<Stretch> stretches_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_FAST_SHORTENED_ORDER_H_
