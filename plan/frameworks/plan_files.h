// SPDX-License-Identifier: Apache-2.0
// Output files of a plan for other programs.
#ifndef WEIR_PLAN_FRAMEWORKS_PLAN_FILES_H_
#define WEIR_PLAN_FRAMEWORKS_PLAN_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/search/plan.pb.h"

namespace weir::plan {

struct PlanFile {
  std::string name;  // "plan-1.textproto"
  std::string contents;
};

struct PlanFiles {
  std::vector<PlanFile> files;
  std::vector<std::string> warnings;  // what other programs cannot represent
};

// Returns the scenario for "weir simulate" (.textproto), the order of the
// passes as PyTorch's pipeline CSV (.csv) and the arguments of Megatron-LM
// (.args). The scenario runs from any folder: models from files are written
// out, other files are named by absolute paths. If Megatron-LM cannot run the
// plan, a warning with the reasons replaces the arguments. `rank` counts from
// 1.
absl::StatusOr<PlanFiles> FilesOfPlan(const Plan& plan, int rank);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_PLAN_FILES_H_
