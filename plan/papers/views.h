// SPDX-License-Identifier: Apache-2.0
// What "weir plan --algorithm" prints.
#ifndef WEIR_PLAN_PAPERS_VIEWS_H_
#define WEIR_PLAN_PAPERS_VIEWS_H_

#include <string>
#include <vector>

#include "plan/papers/ask.h"
#include "plan/papers/pipedream.h"

namespace weir {

// Of a profile graph. JSON: pipeline_time_seconds, single_stage_time_seconds,
// data_parallel_time_seconds, num_states; stages, each with first_state,
// end_state (behind its last), seconds of computation on one machine, replicas
// and nodes; levels, outermost last, as the published code prints them.
std::string PipeDreamTable(const AntichainDag& dag, const PipeDreamPlan& plan);
std::string PipeDreamJson(const AntichainDag& dag, const PipeDreamPlan& plan);

// Of a scenario: by each algorithm, or why not.
std::string AnswersTable(const std::vector<PlannerAnswer>& answers);
std::string AnswersCsv(const std::vector<PlannerAnswer>& answers);
std::string AnswersJson(const std::vector<PlannerAnswer>& answers);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_VIEWS_H_
