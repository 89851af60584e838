// SPDX-License-Identifier: Apache-2.0
// Output of "weir plan --algorithm".
#ifndef WEIR_PLAN_PAPERS_PLANNER_VIEWS_H_
#define WEIR_PLAN_PAPERS_PLANNER_VIEWS_H_

#include <string>
#include <vector>

#include "plan/papers/pipedream.h"
#include "plan/papers/run_planner.h"

namespace weir::plan {

// Views of a plan for a profile graph. The JSON has pipeline_time_seconds,
// single_stage_time_seconds, data_parallel_time_seconds and num_states; stages,
// each with first_state, end_state (exclusive), seconds of computation on one
// machine, replicas and nodes; and levels, outermost last, as the published
// code prints them.
std::string PipeDreamTable(const AntichainDag& dag, const PipeDreamPlan& plan);
std::string PipeDreamJson(const AntichainDag& dag, const PipeDreamPlan& plan);

// Views of each algorithm's plan for a scenario, or of its error.
std::string PlannerResultsTable(const std::vector<PlannerResult>& answers);
std::string PlannerResultsCsv(const std::vector<PlannerResult>& answers);
std::string PlannerResultsJson(const std::vector<PlannerResult>& answers);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_PLANNER_VIEWS_H_
