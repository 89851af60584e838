// SPDX-License-Identifier: Apache-2.0
// What a search has ranked, and which of it is best.
#ifndef WEIR_PLAN_FOUND_H_
#define WEIR_PLAN_FOUND_H_

#include <string>
#include <utility>
#include <vector>

#include "plan/plan.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir {

// What is compared: the first decides, the second between equals.
using Score = std::pair<double, double>;
Score ScoreOf(Objective objective, double seconds, double bytes, int num_gpus);

// One that was ranked.
struct Found {
  Scenario scenario;
  std::string source;
  std::string text;  // DescribeShape, and the schedule
  double seconds = 0, bytes = 0, lower_bound_seconds = 0;
  int num_gpus = 1;
  bool fits = false;
  int index = 0;  // in the order of finding
  // Of several that are the same plan the least is kept: as the space lists
  // them, those outside of it last.
  std::pair<int, int> place = {0, 0};
  std::vector<Scenario> equals = {};  // the others
};

// Whether a schedule trains otherwise than one GPU would: without a flush, or
// with lossy transfers.
bool ChangesTraining(const std::string& schedule);

// Equal sizes, cut, time and memory: a choice that makes no difference there
// (recomputation of what a fused kernel never keeps, an order of GPUs, a name
// of the schedule) tells them apart. Schedules without a flush are told apart
// by their names, too.
bool IsSamePlan(const Found& one, const Found& other);

// What `other` has that `plan` has not: "recompute selective, order tp-pp-dp".
std::string DifferenceOf(const Scenario& other, const Scenario& plan);

// In time, memory and cost it is nowhere worse, and somewhere better or found
// before: by more than rounding.
bool Dominates(const Found& one, const Found& other);

// At most so many, best first; of a Pareto front all, by time.
std::vector<Found> BestOf(std::vector<Found> found, Objective objective,
                          size_t num_plans);

}  // namespace weir

#endif  // WEIR_PLAN_FOUND_H_
