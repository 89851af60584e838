// SPDX-License-Identifier: Apache-2.0
#include "plan/emit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "schedules/schedule_text.h"
#include "sim/simulate.h"

namespace weir {

absl::StatusOr<PlanFiles> FilesOfPlan(const Plan& plan, int rank) {
  const std::string name = absl::StrCat("plan-", rank);
  ASSIGN_OR_RETURN(const ResolvedScenario resolved,
                   ResolveScenario(name, plan.scenario()));
  const auto num_batches =
      static_cast<int>(std::max(plan.scenario().num_batches(), 1u));
  ASSIGN_OR_RETURN(const Schedule schedule,
                   ScheduleOfScenario(resolved, num_batches));
  PlanFiles files;
  files.files = {{name + ".textproto",
                  absl::StrCat("# proto-file: scenarios/scenario.proto\n"
                               "# proto-message: weir.Scenario\n",
                               PrintTextProto(plan.scenario()))},
                 {name + ".args", MegatronArguments(resolved)},
                 {name + ".csv", PrintCsv(schedule)}};
  const absl::Status readable = CheckPyTorchReads(schedule);
  if (!readable.ok()) {
    files.warnings.push_back(
        absl::StrCat(name, ".csv is not for PyTorch: ",
                     absl::StrReplaceAll(readable.message(), {{"\n", "; "}})));
  }
  return files;
}

}  // namespace weir
