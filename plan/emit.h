// SPDX-License-Identifier: Apache-2.0
// A plan as files that other programs take.
#ifndef WEIR_PLAN_EMIT_H_
#define WEIR_PLAN_EMIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/plan.pb.h"

namespace weir {

struct PlanFile {
  std::string name;  // "plan-1.textproto"
  std::string contents;
};

struct PlanFiles {
  std::vector<PlanFile> files;
  std::vector<std::string> warnings;  // what another program cannot take of it
};

// The scenario for "weir simulate" (.textproto), which runs from any folder:
// models from files are written out, other files named by absolute paths; the
// order of the passes as PyTorch's pipeline CSV (.csv); and the arguments of
// Megatron-LM (.args), unless it cannot run the plan, which a warning explains.
// `rank` from 1 on.
absl::StatusOr<PlanFiles> FilesOfPlan(const Plan& plan, int rank);

}  // namespace weir

#endif  // WEIR_PLAN_EMIT_H_
