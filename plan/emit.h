// SPDX-License-Identifier: Apache-2.0
// A plan as files that other programs take.
#ifndef WEIR_PLAN_EMIT_H_
#define WEIR_PLAN_EMIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/plan.pb.h"
#include "scenarios/scenario.h"

namespace weir {

struct PlanFile {
  std::string name;  // "plan-1.textproto"
  std::string contents;
};

struct PlanFiles {
  std::vector<PlanFile> files;
  std::vector<std::string> warnings;  // what another program cannot take of it
};

// The scenario for "weir simulate" (.textproto), the arguments of Megatron-LM
// (.args, a line each, '#' before what is said about them) and the order of the
// passes as PyTorch's pipeline CSV (.csv). `rank` from 1 on.
absl::StatusOr<PlanFiles> FilesOfPlan(const Plan& plan, int rank);

// One argument a line; its value, if any, behind a blank.
std::string MegatronArguments(const ResolvedScenario& scenario);

}  // namespace weir

#endif  // WEIR_PLAN_EMIT_H_
