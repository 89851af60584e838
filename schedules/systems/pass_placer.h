// SPDX-License-Identifier: Apache-2.0
// Builds an order pass by pass and knows when each would run, so that the next
// choice can depend on it: what the automatic Zero Bubble orders stand on.
#ifndef WEIR_SCHEDULES_SYSTEMS_PASS_PLACER_H_
#define WEIR_SCHEDULES_SYSTEMS_PASS_PLACER_H_

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace weir {

// Times are those of TimedWalk at the costs of the spec. A microbatch holds
// its activation from F to I and the inputs of its weight gradient from I to W;
// where these are larger, they are counted from F on, so that an I always fits.
class PassPlacer {
 public:
  // Every microbatch takes `route`, as in Schedule::routes. `memory_limit` is
  // in units of what one microbatch holds at most on a rank: the largest stage,
  // times the stages per rank.
  PassPlacer(const ScheduleSpec& spec, const std::vector<int>& route,
             double memory_limit);

  // Whether the stage has a next F or I, and what it waits for is placed.
  bool CanPut(Op op, int stage) const;
  // Puts the stage's next pass at the end of its rank's order.
  // REQUIRES: CanPut(op, stage), or a W after its I.
  void Put(Op op, int stage);
  // Puts the W that waits longest on the rank. REQUIRES: HasWeight(rank).
  void PutWeight(int rank);
  bool HasWeight(int rank) const {
    return ranks_[rank].next_weight < ranks_[rank].inputs.size();
  }
  // REQUIRES: HasWeight(rank).
  double NextWeightDuration(int rank) const;
  // Puts waiting W until another forward fits, or none waits.
  void MakeRoomForForward(int stage);
  // How many W that would take on a rank with one stage.
  int WeightsBeforeForward(int stage) const;

  // Whether so many more forwards of the stage fit as things are.
  bool HasRoomForForwards(int stage, int num_forwards) const;

  // How many microbatches have had the pass.
  int num(Op op, int stage) const { return num_[static_cast<int>(op)][stage]; }
  double duration(Op op, int stage) const;
  // When what the stage's next F or I waits for on another rank is there;
  // -infinity if that is nothing. REQUIRES: it is placed.
  double Arrival(Op op, int stage) const;
  double end(Op op, int stage, int microbatch) const;
  double free_at(int rank) const { return ranks_[rank].free_at; }

  // From the rank's first start to its last end if no more gaps came, and the
  // longest of all ranks: the cost of the batch once all is placed.
  double idle(int rank) const { return ranks_[rank].idle; }
  double span(int rank) const { return ranks_[rank].span(); }
  double longest_span() const { return longest_span_; }

  // Time comparisons that do not hang on the last bits of a sum.
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
    size_t next_weight = 0;   // position of the first without its W
    double span() const { return work + idle; }
  };

  double Held(int rank) const;
  size_t Cell(int stage, int microbatch) const {
    return static_cast<size_t>(stage) * num_microbatches_ + microbatch;
  }

  const PassCosts& costs_;
  const std::vector<int>& route_;
  int num_microbatches_;
  double limit_ = 0;      // what a rank may hold
  double largest_ = 0;    // what the largest stage holds of a microbatch
  double tolerance_ = 0;  // seconds
  double longest_span_ = 0;
  std::vector<Rank> ranks_;
  std::vector<int> num_[kNumOps];  // [op][stage]
  std::vector<double> ends_[2];    // of F and I, [Cell]
  std::vector<std::vector<Action>> actions_;
};

}  // namespace weir

#endif  // WEIR_SCHEDULES_SYSTEMS_PASS_PLACER_H_
