// SPDX-License-Identifier: Apache-2.0
// Runs the papers' planners on a scenario and simulates their plans.
#ifndef WEIR_PLAN_PAPERS_RUN_PLANNER_H_
#define WEIR_PLAN_PAPERS_RUN_PLANNER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/worker_pool.h"
#include "plan/papers/planner_work.h"
#include "plan/papers/registry.h"
#include "plan/search/plan.pb.h"
#include "scenarios/scenario.h"

namespace weir::plan {

struct PlannerResult {
  std::string algorithm;
  absl::Status planned;  // the reason if there is no plan
  PlannedPipeline plan;
  // The reason if weir cannot represent or simulate the plan. If OK, a full
  // simulation has set the fields below.
  absl::Status simulated;
  Scenario scenario;  // ready for "weir simulate"
  double batch_seconds = 0;
  double samples_per_second = 0;
  double peak_memory_bytes = 0;  // worst GPU
  bool fits_memory = false;      // in the GPUs and in the memory limit
  int num_lint_errors = 0;
  bool trains = true;  // false: forward passes only (inference)
};

// Returns the scenario without what a planner decides (stages, replicas,
// schedule), on the first `num_gpus` GPUs of its cluster (0: all), with at most
// `memory_limit_bytes` of each visible to planners (0: all). Returns
// InvalidArgument if the rest is wrong or the cluster has fewer GPUs.
absl::StatusOr<scenarios::ResolvedScenario> GivenForPlanners(
    absl::string_view label, const Scenario& scenario, int num_gpus = 0,
    double memory_limit_bytes = 0);

struct RunPlannerOptions {
  int num_processes = DefaultProcesses();
  // Called about ten times a second with the number of finished planners.
  std::function<void(int num_done)> progress = {};
};

// Runs each planner in a process of its own and returns the answers in the
// order of `planners`; when interrupted, those of the planners that have
// finished. Returns Unavailable if the machine cannot start processes.
// Requires: `given` comes from GivenForPlanners.
absl::StatusOr<std::vector<PlannerResult>> RunPlanners(
    const std::vector<const PaperPlanner*>& planners,
    const scenarios::ResolvedScenario& given,
    const RunPlannerOptions& options = {});
// Returns the memory of the device that has most.
double MostMemoryBytes(const scenarios::ResolvedScenario& given);
// For a planner for which nothing fits: returns the memory per device with
// which it finds a plan, accurate to a hundredth. 0: even a thousandfold is too
// little.
double EnoughMemoryBytes(const PaperPlanner& planner,
                         const scenarios::ResolvedScenario& given);
std::vector<const PaperPlanner*> AllPaperPlanners();

// Returns the plans that weir can run and that train, as seeds for a search.
std::vector<Plan> PlansOf(const std::vector<PlannerResult>& answers);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_RUN_PLANNER_H_
