// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/plan_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "models/model.h"
#include "plan/frameworks/absolute_path.h"
#include "scenarios/scenario.h"
#include "schedules/interop/schedule_text.h"
#include "sim/simulate.h"

namespace weir::plan {

namespace {

// Makes the scenario independent of the working directory, on which relative
// paths depend.
Scenario FromAnywhere(Scenario scenario, const Model& model) {
  std::error_code error;
  if (std::filesystem::is_regular_file(models::ModelFile(scenario.model()),
                                       error) &&
      model.has_transformer()) {
    scenario.clear_model();
    *scenario.mutable_transformer() = model.transformer();
  }
  for (std::string* name :
       {scenario.mutable_model(), scenario.mutable_cluster(),
        scenario.mutable_profile(), scenario.mutable_runtime()}) {
    *name = AbsoluteIfFile(*name);
  }
  return scenario;
}

}  // namespace

std::vector<Framework> FrameworksOf(const std::vector<Plan>& plans,
                                    const std::vector<std::string>& names) {
  std::vector<Framework> frameworks;
  const auto add = [&](Framework framework) {
    if (std::find(frameworks.begin(), frameworks.end(), framework) ==
        frameworks.end()) {
      frameworks.push_back(framework);
    }
  };
  for (const std::string& name : names) {
    const absl::StatusOr<Framework> framework = FindFramework(name);
    if (framework.ok()) add(*framework);
  }
  if (!names.empty()) return frameworks;
  for (const Plan& plan : plans) {
    add(FrameworkOfRuntime(plan.scenario().runtime()));
  }
  return frameworks;
}

absl::StatusOr<PlanFiles> FilesOfPlan(const Plan& plan, int rank,
                                      const std::vector<std::string>& names) {
  const std::string name = absl::StrCat("plan-", rank);
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario resolved,
                   scenarios::ResolveScenario(name, plan.scenario()));
  const auto num_batches =
      static_cast<int>(std::max(plan.scenario().num_batches(), 1u));
  ASSIGN_OR_RETURN(const schedules::Schedule schedule,
                   sim::ScheduleOfScenario(resolved, num_batches));
  PlanFiles files;
  files.files = {{name + ".textproto",
                  absl::StrCat("# proto-file: scenarios/scenario.proto\n"
                               "# proto-message: weir.Scenario\n",
                               PrintTextProto(FromAnywhere(plan.scenario(),
                                                           resolved.model)))},
                 {name + ".csv", schedules::PrintCsv(schedule)}};
  for (const Framework framework : FrameworksOf({plan}, names)) {
    const absl::StatusOr<ExportedRun> run =
        ExportRun(framework, resolved, name);
    if (run.ok()) {
      files.files.push_back({name + run->suffix, run->contents});
    } else if (absl::IsFailedPrecondition(run.status())) {
      files.warnings.push_back(absl::StrCat("no ", name, SuffixOf(framework),
                                            ", as ", run.status().message()));
    } else {
      return run.status();
    }
  }
  const absl::Status readable = schedules::CheckPyTorchReads(schedule);
  if (!readable.ok()) {
    files.warnings.push_back(
        absl::StrCat(name, ".csv cannot be run by PyTorch: ",
                     absl::StrReplaceAll(readable.message(), {{"\n", "; "}})));
  }
  return files;
}

}  // namespace weir::plan
