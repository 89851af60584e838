// SPDX-License-Identifier: Apache-2.0
// One level of PipeDream's dynamic program, see pipedream.h.
#ifndef WEIR_PLAN_PAPERS_PIPEDREAM_LEVEL_H_
#define WEIR_PLAN_PAPERS_PIPEDREAM_LEVEL_H_

#include <vector>

#include "plan/papers/antichain_dag.h"
#include "plan/papers/pipedream.h"

namespace weir {

// [last][first] Seconds of the states first to last, or bytes; infinite:
// impossible.
using StateSeconds = std::vector<std::vector<double>>;

// What is least in the slowest, or fullest, stage.
enum class PipeDreamGoal { kSeconds, kBytes };

// Those of one machine without any below it.
double ComputeSeconds(const AntichainDag& dag, int first, int last);
double ParameterBytes(const AntichainDag& dag, int first, int last);
// Activations and parameters.
double StateBytes(const AntichainDag& dag, int first, int last);

class PipeDreamLevel {
 public:
  // `below` is of one machine of this level, null for the lowest. All but the
  // highest level need every [first, last], that only [0, last].
  PipeDreamLevel(const AntichainDag& dag, const PipeDreamOptions& options,
                 int level, const StateSeconds* below,
                 PipeDreamGoal goal = PipeDreamGoal::kSeconds);

  // Returns false if options.stop has ended it.
  bool Solve();

  // Of all machines of this level together; consumes the level's tables for
  // fewer of them no more than Stages does.
  const StateSeconds& best() const { return best_.back(); }

  // The stages of states [first, end) that attain the best.
  // REQUIRES: that is finite.
  std::vector<PipeDreamStage> Stages(int first, int end) const;

 private:
  double Compute(int first, int last) const;
  double HeldBytes(int first, int last, int machines_left, int replicas) const;
  // What a stage that takes so many seconds costs: infinite where it does not
  // fit; with kBytes what it holds.
  double Cost(double seconds, int first, int last, int machines_left,
              int replicas) const;
  double Whole(int first, int last, int machines) const;
  double LastStage(int split, int last, int replicas) const;
  void Improve(int split, int last, std::vector<double>* worst);

  const AntichainDag& dag_;
  const PipeDreamOptions& options_;
  const StateSeconds* below_;
  const int num_states_, num_machines_, machines_below_, max_replicas_;
  const bool is_highest_;
  const PipeDreamGoal goal_;
  const double bytes_per_second_;
  std::vector<StateSeconds> best_;  // [machines - 1]
};

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_PIPEDREAM_LEVEL_H_
