// SPDX-License-Identifier: Apache-2.0
// A relaxation of a problem to one rank, with all others as fast as possible.
#ifndef WEIR_PLAN_SYNTHESIS_SINGLE_RANK_BOUND_H_
#define WEIR_PLAN_SYNTHESIS_SINGLE_RANK_BOUND_H_

#include <limits>

namespace weir::plan {

// A rank with one stage. Times share one unit and held amounts another.
struct SingleRankProblem {
  int num_microbatches = 1;
  double forward = 1, input = 1, weight = 1;
  double fused = 2;  // a whole backward
  bool can_split = true, may_fuse = false;
  double activation = 1, weight_inputs = 1;
  double limit = std::numeric_limits<double>::infinity();

  // Forward k cannot start before k times this.
  double between_arrivals = 0;
  // The shortest time from the end of a forward to the start of its gradient.
  double turnaround = 0;
  // Time per microbatch on later ranks: the slowest forward, the last rank's
  // forward plus gradient, the slowest gradient.
  double forwards_apart = 0, turn = 0, gradients_apart = 0;
  // All work of a microbatch on one later rank, and the most work of n
  // consecutive ones that can be left there when the last one's gradient is
  // ready.
  double work = 0, work_left = std::numeric_limits<double>::infinity();

  bool until_all_is_done = true;  // false: until the last gradient
  double tail = 0;                // after the last gradient
  // An upper limit of the result; larger times are not distinguished.
  double cutoff = std::numeric_limits<double>::infinity();
};

// Returns a lower bound on the time of every order of the rank's passes, from
// the first forward, which can start at 0; at most `cutoff`. A dynamic program
// over the numbers of passes done keeps the Pareto front of times for each.
// Beyond some hundreds of entries, groups of them are merged into their minima.
double SingleRankBound(const SingleRankProblem& rank);

// Returns the number of states that SingleRankBound may visit; 100,000 take
// about a second.
double SituationsOf(const SingleRankProblem& rank);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_SINGLE_RANK_BOUND_H_
