// SPDX-License-Identifier: Apache-2.0
// Serialization of planner answers, from a child process to its parent.
#ifndef WEIR_PLAN_PAPERS_PLANNER_ANSWER_H_
#define WEIR_PLAN_PAPERS_PLANNER_ANSWER_H_

#include <string>

#include "absl/status/statusor.h"
#include "plan/papers/run_planner.h"

namespace weir {

std::string PackAnswer(const PlannerAnswer& answer);

// Returns Internal for bytes that PackAnswer did not write.
absl::StatusOr<PlannerAnswer> UnpackAnswer(const std::string& bytes);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_PLANNER_ANSWER_H_
