// SPDX-License-Identifier: Apache-2.0
// Output files of a plan for other programs.
#ifndef WEIR_PLAN_FRAMEWORKS_PLAN_FILES_H_
#define WEIR_PLAN_FRAMEWORKS_PLAN_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/frameworks/exported_run.h"
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

// Returns the frameworks of these names, or without names those that the
// runtimes of the plans describe; each once.
std::vector<Framework> FrameworksOf(const std::vector<Plan>& plans,
                                    const std::vector<std::string>& names);

// Returns the scenario for "weir simulate" (.textproto), the order of the
// passes as PyTorch's pipeline CSV (.csv), and a file for each framework, see
// FrameworksOf. The scenario runs from any folder: models from files are
// written out, other files are named by absolute paths. If a framework cannot
// run the plan, a warning with the reasons replaces its file. `rank` counts
// from 1. Returns the errors of ResolveScenario and ScheduleOfScenario. Also
// returns Internal as ExportRun does.
absl::StatusOr<PlanFiles> FilesOfPlan(const Plan& plan, int rank,
                                      const std::vector<std::string>& names);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_PLAN_FILES_H_
