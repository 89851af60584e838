// SPDX-License-Identifier: Apache-2.0
// One level of PipeDream's dynamic program (pipedream.h).
#ifndef WEIR_PLAN_PAPERS_PIPEDREAM_LEVEL_H_
#define WEIR_PLAN_PAPERS_PIPEDREAM_LEVEL_H_

#include <vector>

#include "plan/papers/antichain_dag.h"
#include "plan/papers/pipedream.h"

namespace weir::plan {

// Seconds or bytes of the states first to last, as [last][first]; infinite:
// impossible.
using StateSeconds = std::vector<std::vector<double>>;

// The maximum over stages that is minimized: seconds or bytes.
enum class PipeDreamGoal { kSeconds, kBytes };

// Return the seconds and bytes of states [first, last] on a machine of the
// lowest level.
double ComputeSeconds(const AntichainDag& dag, int first, int last);
double ParameterBytes(const AntichainDag& dag, int first, int last);
// Returns the bytes of activations and parameters.
double StateBytes(const AntichainDag& dag, int first, int last);

class PipeDreamLevel {
 public:
  // `below` has the best values of one machine of this level; null for the
  // lowest. All levels but the highest compute every [first, last], the highest
  // only [0, last].
  PipeDreamLevel(const AntichainDag& dag, const PipeDreamOptions& options,
                 int level, const StateSeconds* below,
                 PipeDreamGoal goal = PipeDreamGoal::kSeconds);

  // Returns false if options.stop ended the search.
  bool Solve();

  // Returns the best values with all machines of this level: seconds or bytes,
  // as the goal says. Requires: Solve.
  const StateSeconds& best() const { return best_.back(); }

  // Returns stages of the states [first, end) that attain the best value.
  // Requires: the value is finite.
  std::vector<PipeDreamStage> Stages(int first, int end) const;

 private:
  double Compute(int first, int last) const;
  double HeldBytes(int first, int last, int machines_left, int replicas) const;
  // Returns the cost of a stage that takes `seconds`: infinite if it does not
  // fit; with kBytes the bytes that it holds.
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

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_PIPEDREAM_LEVEL_H_
