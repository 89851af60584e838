// SPDX-License-Identifier: Apache-2.0
// Plans that a search has ranked, and comparisons between them.
#ifndef WEIR_PLAN_SEARCH_RANKED_PLAN_H_
#define WEIR_PLAN_SEARCH_RANKED_PLAN_H_

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "plan/search/plan.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::plan {

// The values to compare, lexicographically. Smaller is better.
using Score = std::pair<double, double>;
Score ScoreOf(Objective objective, double seconds, double bytes, int num_gpus,
              double joules);

// A candidate that was ranked.
struct RankedPlan {
  Scenario scenario;
  std::string source;
  std::string text;  // DescribeShape and the schedule
  double seconds = 0, bytes = 0, lower_bound_seconds = 0;
  double joules = 0;  // of a step; 0: unknown
  int num_gpus = 1;
  bool fits = false;
  int index = 0;  // in the order of ranking
  static constexpr int kOutside = std::numeric_limits<int>::max();
  // The position in the space, [shape, schedule]. Of several equal plans the
  // one with the lowest position is kept. Plans outside the space come last.
  std::pair<int, int> place = {kOutside, 0};
  std::vector<Scenario> equals = {};  // plans merged into this one
};

// Returns for example "best 17.0 s, tp 4 pp 4 dp 32 vpp 7 mbs 1", for progress.
std::string BestText(const RankedPlan& plan);

// Returns the plan with the values of its ranked run.
Plan RankedAsPlan(const RankedPlan& found);

// Returns true if a schedule's training differs from that of one GPU: without a
// flush, or with lossy transfers.
bool ChangesTraining(const std::string& schedule);

// Returns true if sizes, cut, time and memory are equal. Such plans differ only
// in a choice that has no effect, such as recomputation of what a fused kernel
// never saves, an order of GPUs or a name of the schedule. Schedules that
// change the training must also have the same name.
bool IsSamePlan(const RankedPlan& one, const RankedPlan& other);

// Returns true if plans differ at most in the order of GPUs, the mode of
// gradient reductions, the overlap of collectives and sequence parallelism.
bool HasSameLayout(const Scenario& one, const Scenario& other);

// Describes how `other` differs from `plan`: "recompute selective, order
// tp-pp-dp".
std::string DifferenceOf(const Scenario& other, const Scenario& plan);

// Returns true if `one` is not worse than `other` in time, memory and cost,
// rounding aside, and is better in one of them or was found before.
bool Dominates(const RankedPlan& one, const RankedPlan& other);

// Returns at most `num_plans` plans, best first, and only the best of each
// layout (HasSameLayout).
std::vector<const RankedPlan*> BestLayouts(std::vector<const RankedPlan*> found,
                                           Objective objective,
                                           size_t num_plans);

// Returns at most `num_plans` plans, best first, of each layout
// (HasSameLayout) only the best; for a Pareto front, all of it by time.
std::vector<RankedPlan> BestOf(std::vector<RankedPlan> found,
                               Objective objective, size_t num_plans);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_RANKED_PLAN_H_
