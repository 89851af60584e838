// SPDX-License-Identifier: Apache-2.0
// Serialization of planner answers, from a child process to its parent.
#ifndef WEIR_PLAN_PAPERS_PLANNER_RESULT_H_
#define WEIR_PLAN_PAPERS_PLANNER_RESULT_H_

#include <string>

#include "absl/status/statusor.h"
#include "plan/papers/run_planner.h"

namespace weir::plan {

std::string SerializeResult(const PlannerResult& answer);

// Returns Internal for bytes that SerializeResult did not write.
absl::StatusOr<PlannerResult> ParseResult(const std::string& bytes);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_PLANNER_RESULT_H_
