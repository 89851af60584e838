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
};

// In time, memory and cost it is nowhere worse, and somewhere better or found
// before: by more than rounding.
bool Dominates(const Found& one, const Found& other);

// At most so many, best first; of a Pareto front all, by time.
std::vector<Found> BestOf(std::vector<Found> found, Objective objective,
                          size_t num_plans);

}  // namespace weir

#endif  // WEIR_PLAN_FOUND_H_
