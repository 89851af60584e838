// SPDX-License-Identifier: Apache-2.0
// Builds an order pass by pass and tracks the time of each pass, so that the
// next choice can depend on it. Used by the automatic Zero Bubble orders.
#ifndef WEIR_SCHEDULES_SYSTEMS_PASS_PLACER_H_
#define WEIR_SCHEDULES_SYSTEMS_PASS_PLACER_H_

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace weir::schedules {

// Times are those of TimedWalk at the costs of the spec. A microbatch occupies
// memory for its activation from F to I and for its weight gradient inputs from
// I to W. If the latter are larger, they are counted from F on, so that an I
// always fits.
class PassPlacer {
 public:
  // Every microbatch takes `route`, as in Schedule::routes. The unit of
  // `memory_limit` is the maximum memory of one microbatch on a rank: that of
  // the largest stage times the stages per rank.
  PassPlacer(const ScheduleSpec& spec, const std::vector<int>& route,
             double memory_limit);

  // Returns true if the stage has a next F or I, and everything that it waits
  // for has been placed.
  bool CanPut(Op op, int stage) const;
  // Appends the stage's next pass to its rank's order. Requires: CanPut(op,
  // stage), or a W after its I.
  void Put(Op op, int stage);
  // Appends the rank's oldest pending W. Requires: HasWeight(rank).
  void PutWeight(int rank);
  bool HasWeight(int rank) const {
    return ranks_[rank].next_weight < ranks_[rank].inputs.size();
  }
  // Requires: HasWeight(rank).
  double NextWeightDuration(int rank) const;
  // Appends pending W until another forward fits or none is pending.
  void MakeRoomForForward(int stage);
  // Returns the number of W that this would append on a rank with one stage.
  int WeightsBeforeForward(int stage) const;

  // Returns true if this many more forwards of the stage fit now.
  bool HasRoomForForwards(int stage, int num_forwards) const;

  // Returns the number of microbatches whose pass has been placed.
  int num(Op op, int stage) const { return num_[static_cast<int>(op)][stage]; }
  double duration(Op op, int stage) const;
  // Returns the arrival time of the data that the stage's next F or I needs
  // from another rank; -infinity if it needs none. Requires: the pass that
  // computes it is placed.
  double Arrival(Op op, int stage) const;
  double end(Op op, int stage, int microbatch) const;
  double free_at(int rank) const { return ranks_[rank].free_at; }

  // The span of a rank is the time from its first start to its last end,
  // assuming no more gaps. The longest span of all ranks is the cost of the
  // batch once everything is placed.
  double idle(int rank) const { return ranks_[rank].idle; }
  double span(int rank) const { return ranks_[rank].span(); }
  double longest_span() const { return longest_span_; }

  // Compare times with a tolerance for rounding errors.
  bool AtMost(double a, double b) const { return a <= b + tolerance_; }
  bool Less(double a, double b) const { return a < b - tolerance_; }

  std::vector<std::vector<Action>> TakeActions() { return std::move(actions_); }

 private:
  struct Rank {
    std::vector<int> stages;
    double free_at = 0;
    double work = 0;          // of the whole batch
    double idle = 0;          // since its first start
    std::vector<int> inputs;  // stages in the order of their I
    size_t next_weight = 0;   // index of the first without W
    double span() const { return work + idle; }
  };

  double Held(int rank) const;
  size_t Cell(int stage, int microbatch) const {
    return static_cast<size_t>(stage) * num_microbatches_ + microbatch;
  }

  const PassCosts& costs_;
  const std::vector<int>& route_;
  int num_microbatches_;
  double limit_ = 0;      // on a rank's memory
  double largest_ = 0;    // memory of a microbatch in the largest stage
  double tolerance_ = 0;  // seconds
  double longest_span_ = 0;
  std::vector<Rank> ranks_;
  std::vector<int> num_[kNumScheduledOps];  // [op][stage]
  std::vector<double> ends_[2];             // of F and I, [Cell]
  std::vector<std::vector<Action>> actions_;
};

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_SYSTEMS_PASS_PLACER_H_
