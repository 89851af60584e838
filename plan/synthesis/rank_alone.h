// SPDX-License-Identifier: Apache-2.0
// One rank of a problem on its own, all others as fast as they can ever be.
#ifndef WEIR_PLAN_SYNTHESIS_RANK_ALONE_H_
#define WEIR_PLAN_SYNTHESIS_RANK_ALONE_H_

#include <limits>

namespace weir {

// A rank with one stage. Times in one unit, what is held in another.
struct RankAlone {
  int num_microbatches = 1;
  double forward = 1, input = 1, weight = 1;
  double fused = 2;  // a whole backward
  bool can_split = true, may_fuse = false;
  double activation = 1, weight_inputs = 1;
  double limit = std::numeric_limits<double>::infinity();

  // Forward k cannot start before k times this.
  double between_arrivals = 0;
  // From the end of a forward to the start of its gradient, at least.
  double way = 0;
  // What each microbatch takes on later ranks: the slowest forward, the last
  // rank's forward and gradient together, the slowest gradient.
  double forwards_apart = 0, turn = 0, gradients_apart = 0;
  // All that each takes on one later rank, and of n in a row how much can still
  // be left there when the last one's gradient is ready.
  double work = 0, work_left = std::numeric_limits<double>::infinity();

  bool until_all_is_done = true;  // not only until the last gradient
  double tail = 0;                // after the last gradient
  // Where it takes as long as this nothing more is asked.
  double cutoff = std::numeric_limits<double>::infinity();
};

// From the first forward, which can start at 0: what no order of the rank's
// passes can beat. The best of them, found by going through all numbers of
// passes done and keeping, of each, the times that no other is better than;
// beyond some hundreds these are made one, the best of each. At most `cutoff`.
double LeastTimeAlone(const RankAlone& rank);

// How many numbers of passes it would go through: some 100,000 take a second.
double SituationsOf(const RankAlone& rank);

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_RANK_ALONE_H_
