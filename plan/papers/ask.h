// SPDX-License-Identifier: Apache-2.0
// What the papers' planners find for a scenario, and what weir's simulator says
// of it.
#ifndef WEIR_PLAN_PAPERS_ASK_H_
#define WEIR_PLAN_PAPERS_ASK_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/papers/registry.h"
#include "plan/plan.pb.h"
#include "plan/planner_work.h"
#include "scenarios/scenario.h"

namespace weir {

struct PlannerAnswer {
  std::string algorithm;
  absl::Status planned;  // why there is no plan
  PlannedPipeline plan;
  // Why weir cannot say or run it. Where OK the rest is filled in, by a full
  // simulation.
  absl::Status simulated;
  Scenario scenario;  // ready for "weir simulate"
  double batch_seconds = 0;
  double samples_per_second = 0;
  double peak_memory_bytes = 0;  // of the worst GPU
  bool fits_memory = false;      // and the limit
  int num_lint_errors = 0;
  bool trains = true;  // else only forwards: inference
};

// The scenario without what a planner decides (stages, replicas, schedule), on
// the first `num_gpus` GPUs of its cluster (0: all), of which planners see at
// most `memory_limit_bytes` each (0: all). InvalidArgument where the rest is
// wrong, or more GPUs are asked for than there are.
absl::StatusOr<ResolvedScenario> GivenForPlanners(
    absl::string_view label, const Scenario& scenario, int num_gpus = 0,
    double memory_limit_bytes = 0);

// REQUIRES: `given` is GivenForPlanners'.
PlannerAnswer Ask(const PaperPlanner& planner, const ResolvedScenario& given);
// Of the device that has most.
double MostMemoryBytes(const ResolvedScenario& given);
// Of a planner for which nothing fits: memory of a device, to a hundredth, with
// which it finds a plan. 0: not even a thousandfold would do.
double EnoughMemoryBytes(const PaperPlanner& planner,
                         const ResolvedScenario& given);
// `progress` is told which planner comes next, and the part that is done.
std::vector<PlannerAnswer> AskAll(
    const ResolvedScenario& given,
    const std::function<void(absl::string_view, double)>& progress = {});

// Those that weir can run and that train, for a search to start from.
std::vector<Plan> PlansOf(const std::vector<PlannerAnswer>& answers);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_ASK_H_
