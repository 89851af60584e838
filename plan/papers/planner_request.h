// SPDX-License-Identifier: Apache-2.0
// Requests to the planners of papers ("weir plan --algorithm"): what they may
// contain, the scenario that they describe, and the answer if nothing fits.
// Problems name the options of "weir plan".
#ifndef WEIR_PLAN_PAPERS_PLANNER_REQUEST_H_
#define WEIR_PLAN_PAPERS_PLANNER_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "plan/papers/antichain_dag.h"
#include "plan/papers/pipedream.h"
#include "plan/papers/registry.h"
#include "plan/search/plan.pb.h"
#include "scenarios/scenario.h"

namespace weir::plan {

// The planner that also plans a profile graph.
inline constexpr absl::string_view kGraphPlanner = "pipedream";

// Of a request, planners use the sizes that they do not decide (--tp, --mbs,
// --recompute, --gpus) and the memory limit. Adds a problem for each other
// option. `synchronous` and `explain` are options outside of the request.
void RefuseSearchOptions(const PlanRequest& request, bool synchronous,
                         bool explain, Problems* problems);

// Adds a problem for each option that is only for a profile graph.
void RefuseGraphOptions(const PipeDreamOptions& options, Problems* problems);

// Checks a request for a profile graph: the planner, and one machine count and
// bandwidth per level.
void CheckGraphRequest(absl::string_view planner,
                       const PipeDreamOptions& options, Problems* problems);

// Sets the memory limit: `memory_limit_bytes`, or if that is 0, the default of
// the published code if its count of memory is requested.
void SetGraphMemoryLimit(double memory_limit_bytes, PipeDreamOptions* options);

// Returns limitations of a plan that a user should know. The published code has
// the same limitations without a warning.
std::vector<std::string> GraphPlanWarnings(const AntichainDag& dag,
                                           const PipeDreamOptions& options,
                                           const PipeDreamPlan& plan);

// Returns the scenario with the sizes of the request, as GivenForPlanners does.
// Microbatches have one sample by default. Returns InvalidArgument for an
// option with several values.
absl::StatusOr<scenarios::ResolvedScenario> GivenByRequest(
    absl::string_view label, const Scenario& scenario,
    const PlanRequest& request);

// Returns FailedPrecondition with the memory that would be enough: the request
// is valid, but the answer is negative. Requires: `planner` returned the
// NotFound error `why` for the scenario of GivenByRequest. Takes up to minutes.
absl::Status NothingFits(const PaperPlanner& planner, absl::string_view label,
                         const Scenario& scenario, const PlanRequest& request,
                         const absl::Status& why);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_PLANNER_REQUEST_H_
