// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/assets.h"
#include "base/problems.h"
#include "base/proto_json.h"
#include "base/status_macros.h"
#include "scenarios/check_scenario.h"
#include "scenarios/chunks.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cut_costs.h"
#include "scenarios/default_set.h"
#include "scenarios/explicit_none.h"
#include "scenarios/failures.h"
#include "scenarios/fill_defaults.h"
#include "scenarios/host_rate.h"
#include "scenarios/load_files.h"
#include "scenarios/place_scenario.h"
#include "scenarios/sizes.h"
#include "scenarios/uneven_split.h"
#include "scenarios/vocabulary_parallel.h"
#include "schedules/source.h"

namespace weir::scenarios {

absl::StatusOr<Scenario> LoadScenario(const std::string& name_or_path) {
  ASSIGN_OR_RETURN(const Asset asset,
                   LoadAsset("scenarios/presets", name_or_path));
  Scenario scenario;
  RETURN_IF_ERROR(ParseProtoText(asset.label, asset.contents, &scenario));
  return scenario;
}

absl::StatusOr<ResolvedScenario> ResolveScenario(absl::string_view label,
                                                 const Scenario& scenario) {
  ResolvedScenario resolved;
  resolved.label = std::string(label);
  resolved.scenario = scenario;
  ClearExplicitNone(&resolved.scenario);
  resolved.given_costs = scenario.has_costs();
  std::vector<absl::Status> failures;
  const absl::Status sizes = FillSizes(label, &resolved.scenario);
  if (!sizes.ok()) failures.push_back(sizes);
  const StageCheck stages = !sizes.ok() ? StageCheck::kNone
                            : scenario.parallelism().data() == 0
                                ? StageCheck::kDividesGpus
                                : StageCheck::kAny;
  FillVocabularySchedule(&resolved.scenario);
  RETURN_IF_ERROR(FillChunks(&resolved.scenario));
  Problems problems(label);
  const absl::Status file = FillFromScheduleFile(problems, resolved.scenario);
  if (!file.ok()) failures.push_back(file);
  CheckFields(problems, resolved.scenario);
  FillDefaults(resolved.scenario);
  const bool fields_are_sound = problems.empty() && file.ok();
  if (fields_are_sound && sizes.ok()) {
    CheckBatchDivides(problems, resolved.scenario);
  }
  if (!schedules::IsScheduleFile(resolved.scenario.schedule())) {
    // Without a whole number of microbatches the shape cannot be checked.
    const absl::Status status =
        CheckSchedule(label, resolved.scenario, problems.empty() && sizes.ok());
    if (!status.ok()) failures.push_back(status);
  }
  if (!resolved.given_costs) {
    RETURN_IF_ERROR(LoadFiles(problems, fields_are_sound, stages,
                              std::move(failures), resolved));
  } else {
    for (const std::string& setting : scenario.set_figures()) {
      problems.Add(absl::StrCat("--set ", setting),
                   "has no effect on given costs, which use no parameters; "
                   "expected a model and a cluster");
    }
    RETURN_IF_ERROR(MergeFailures(problems, failures));
    const std::string cut = CutGivenCosts(problems, &resolved.scenario);
    RETURN_IF_ERROR(problems.ToStatus());
    if (!cut.empty()) resolved.warnings.push_back(cut);
    const Parallelism& parallelism = resolved.scenario.parallelism();
    ASSIGN_OR_RETURN(resolved.placement,
                     MakePlacement(resolved.label, parallelism,
                                   static_cast<int>(parallelism.pipeline() *
                                                    parallelism.data())));
  }
  resolved.num_microbatches = NumMicrobatches(resolved.scenario);
  return resolved;
}

absl::Status ResolveAgain(const Scenario& scenario,
                          ResolvedScenario* resolved) {
  Scenario& mine = resolved->scenario;
  mine = scenario;
  ClearExplicitNone(&mine);
  FillVocabularySchedule(&mine);
  RETURN_IF_ERROR(TakeScheduleChunks(&mine));
  RETURN_IF_ERROR(FillChunks(&mine));
  Problems problems(resolved->label);
  CheckFields(problems, mine);
  FillDefaults(mine);
  if (!problems.empty()) return problems.ToStatus();
  resolved->used_defaults = {};
  ApplyRecipe(resolved->loaded_recipe, &mine, &resolved->recipe);
  FillFrom(resolved->default_set, resolved->model, &mine,
           &resolved->used_defaults);
  AdaptTo(resolved->device, &mine, &resolved->used_defaults);
  for (const DeviceProfile& device : resolved->other_devices) {
    AdaptTo(device, &mine, &resolved->used_defaults);
  }
  FillDefaultsOf(resolved->runtime, &mine, &resolved->used_defaults);
  CheckBatchDivides(problems, mine);
  SetMtpModules(problems, mine.training(), &resolved->model);
  SetRouting(problems, mine.training(), &resolved->model);
  FillUnevenSplit(problems, resolved->model, mine.mutable_parallelism());
  CheckAgainstModel(problems, mine, resolved->model);
  std::vector<absl::Status> failures;
  const absl::Status schedule =
      CheckSchedule(resolved->label, mine, problems.empty());
  if (!schedule.ok()) failures.push_back(schedule);
  auto placement = KeepValue(resolved->label,
                             MakePlacement(resolved->label, mine.parallelism(),
                                           NumGpus(resolved->cluster)),
                             failures);
  RETURN_IF_ERROR(MergeFailures(problems, failures));
  resolved->placement = *std::move(placement);
  resolved->num_microbatches = NumMicrobatches(mine);
  FillHostOptimizerRate(mine, resolved->cluster, &resolved->runtime);
  return absl::OkStatus();
}

}  // namespace weir::scenarios
