// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/assets.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/runtime.h"
#include "models/model.h"
#include "models/recipe.h"
#include "scenarios/check_scenario.h"
#include "scenarios/chunks.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/slow_parts.h"
#include "scenarios/fill_defaults.h"
#include "scenarios/host_rate.h"
#include "scenarios/profile_warnings.h"
#include "scenarios/set_figures.h"
#include "scenarios/sizes.h"
#include "scenarios/uneven_split.h"
#include "scenarios/vocabulary_parallel.h"
#include "schedules/registry.h"
#include "schedules/source.h"

namespace weir::scenarios {
namespace {

// Returns the value of a result, or appends its status to `failures`. Prefixes
// NotFound with `where`, because its message does not contain the field.
template <typename T>
std::optional<T> Keep(absl::string_view where, absl::StatusOr<T> result,
                      std::vector<absl::Status>& failures) {
  if (result.ok()) return *std::move(result);
  const absl::Status& status = result.status();
  failures.push_back(
      absl::IsNotFound(status)
          ? absl::NotFoundError(absl::StrCat(where, " ", status.message()))
          : status);
  return {};
}

// Combines everything into one status: first the problems, then the failures.
absl::Status Merge(const Problems& problems,
                   const std::vector<absl::Status>& failures) {
  if (problems.empty() && failures.empty()) return absl::OkStatus();
  if (problems.empty() && failures.size() == 1) return failures[0];
  std::vector<std::string> messages;
  if (!problems.empty()) messages.emplace_back(problems.ToStatus().message());
  for (const absl::Status& failure : failures)
    messages.emplace_back(failure.message());
  return absl::InvalidArgumentError(absl::StrJoin(messages, "\n"));
}

// Returns an error if the cluster has too few GPUs, with the nodes that would
// be enough.
absl::Status CheckNumGpus(const std::string& label,
                          const Parallelism& parallelism,
                          const Cluster& cluster) {
  const double context = Degree(parallelism.context());
  const double needed = context * parallelism.tensor() * parallelism.data() *
                        parallelism.pipeline();
  const int available = NumGpus(cluster);
  if (needed <= available) return absl::OkStatus();
  std::string hint;
  if (cluster.groups_size() == 1) {
    hint = absl::StrFormat(
        "; --nodes %.0f has enough",
        std::ceil(needed / std::max(cluster.groups(0).node().num_gpus(), 1u)));
  }
  const auto group =
      static_cast<int>(context * parallelism.tensor() * parallelism.pipeline());
  if (const int most = available / std::max(group, 1); most > 0) {
    absl::StrAppend(&hint, hint.empty() ? "; " : ", ", "--dp ", most, " uses ",
                    most * group);
  }
  const std::string and_context =
      context > 1 ? absl::StrFormat(" x parallelism.context %.0f", context)
                  : "";
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: parallelism.tensor %d x parallelism.pipeline %d x parallelism.data "
      "%d%s needs %.0f GPUs, but the cluster has %d%s",
      label, parallelism.tensor(), parallelism.pipeline(), parallelism.data(),
      and_context, needed, available, hint));
}

absl::StatusOr<Placement> MakePlacement(const std::string& label,
                                        const Parallelism& parallelism,
                                        int num_gpus_available) {
  const std::string where = absl::StrCat(label, ": parallelism");
  const int tensor = static_cast<int>(parallelism.tensor());
  // The ranks that share a sequence are neighbors among the replicas.
  const double replicas = parallelism.data() * Degree(parallelism.context());
  const int data = static_cast<int>(std::min(replicas, 1.0 * kMaxGpus + 1));
  const int pipeline = static_cast<int>(parallelism.pipeline());
  if (parallelism.gpus().empty()) {
    return PlaceInOrder(where, parallelism.order(), tensor, data, pipeline,
                        num_gpus_available);
  }
  const std::vector<int> gpus(parallelism.gpus().begin(),
                              parallelism.gpus().end());
  return PlaceAsGiven(where, gpus, tensor, data, pipeline, num_gpus_available);
}

// Replaces the number of MTP modules by that of the scenario.
void SetMtpModules(Problems& problems, const Training& training, Model* model) {
  if (!training.has_mtp_num_layers()) return;
  if (model->has_transformer()) {
    model->mutable_transformer()->set_num_mtp_modules(
        training.mtp_num_layers());
  } else if (training.mtp_num_layers() > 0) {
    problems.Add("training.mtp_num_layers",
                 absl::StrCat("is ", training.mtp_num_layers(),
                              ", expected 0: the layers of this model were "
                              "measured whole"));
  }
}

// Loads the files that a scenario names and checks them against each other.
class Loader {
 public:
  Loader(Problems& problems, bool fields_are_sound, StageCheck stages,
         std::vector<absl::Status> failures, ResolvedScenario& resolved)
      : problems_(problems),
        resolved_(resolved),
        scenario_(resolved.scenario),
        fields_are_sound_(fields_are_sound),
        stages_(stages),
        failures_(std::move(failures)) {}

  absl::Status Load() {
    if (scenario_.has_transformer() != !scenario_.model().empty()) TakeModel();
    DeviceNames devices;
    if (!scenario_.profile().empty()) {
      devices.names = {scenario_.profile()};
      devices.speeds = {1};
    }
    if (!scenario_.cluster().empty() && scenario_.num_nodes() <= kMaxGpus)
      devices = TakeCluster();
    for (size_t i = 0; i < devices.names.size(); ++i) {
      TakeDevice(devices.names[i], devices.speeds[i]);
    }
    TakeRuntime();
    ChooseAttention();
    resolved_.gpu_device = std::move(devices.gpu_device);
    Warn();
    if (problems_.empty() && failures_.empty()) {
      FillHostOptimizerRate(scenario_, resolved_.cluster, &resolved_.runtime);
    }
    // Keep a single profile for all GPUs when the scenario is run again.
    if (devices.names.size() == 1) scenario_.set_profile(devices.names[0]);
    return Merge(problems_, failures_);
  }

 private:
  std::string Where(absl::string_view field) const {
    return absl::StrCat(resolved_.label, ": ", field);
  }

  absl::StatusOr<Model> ModelOfScenario() {
    if (!scenario_.has_transformer())
      return models::LoadModel(scenario_.model());
    Model model;
    model.set_name("transformer");
    *model.mutable_transformer() = scenario_.transformer();
    ASSIGN_OR_RETURN(model,
                     models::CompleteModel(resolved_.label, std::move(model)));
    *scenario_.mutable_transformer() = model.transformer();
    return model;
  }

  void TakeModel() {
    auto model = Keep(Where("model"), ModelOfScenario(), failures_);
    if (!model.has_value()) return;
    resolved_.model = *std::move(model);
    SetMtpModules(problems_, scenario_.training(), &resolved_.model);
    auto set = Keep(Where("defaults"), DefaultSetOf(scenario_, resolved_.model),
                    failures_);
    if (!set.has_value()) return;
    resolved_.default_set = *std::move(set);
    TakeRecipe();
    FillFrom(resolved_.default_set, resolved_.model, &scenario_,
             &resolved_.used_defaults);
    if (fields_are_sound_)
      FillUnevenSplit(problems_, resolved_.model,
                      scenario_.mutable_parallelism());
    if (fields_are_sound_)
      CheckAgainstModel(problems_, scenario_, resolved_.model, stages_);
  }

  void TakeRecipe() {
    const std::string& name = scenario_.training().recipe();
    if (!name.empty()) {
      auto recipe =
          Keep(Where("training.recipe"), models::LoadRecipe(name), failures_);
      if (!recipe.has_value()) return;
      resolved_.loaded_recipe = *std::move(recipe);
    }
    ApplyRecipe(resolved_.loaded_recipe, &scenario_, &resolved_.recipe);
    const Recipe& recipe = resolved_.recipe;
    const bool quantizes = !models::FormatsOf(recipe).empty();
    if (quantizes && !resolved_.model.has_transformer()) {
      problems_.Add("training.recipe",
                    absl::StrCat("is \"", name,
                                 "\", expected none: the layers of this model "
                                 "were measured whole"));
    }
    if (quantizes) {
      CheckQuantizedBlocks(problems_, recipe, resolved_.model.transformer());
    } else {
      WarnOfRecipeFields();
    }
  }

  // Names the fields that have an effect only with a recipe.
  void WarnOfRecipeFields() {
    const Recipe& recipe = resolved_.recipe;
    std::vector<std::string> fields;
    if (recipe.quantized_parameters())
      fields.push_back("training.quantized_parameters");
    if (recipe.first_blocks_in_16_bits() > 0)
      fields.push_back("training.first_blocks_in_16_bits");
    if (recipe.last_blocks_in_16_bits() > 0)
      fields.push_back("training.last_blocks_in_16_bits");
    if (fields.empty()) return;
    resolved_.warnings.push_back(absl::StrCat(
        absl::StrJoin(fields, ", "), fields.size() == 1 ? " has" : " have",
        " no effect without a recipe in 8 or 4 bits"));
  }

  // Returns the devices to load; none if they cannot be determined.
  DeviceNames TakeCluster() {
    auto cluster = Keep(Where("cluster"),
                        LoadCluster(scenario_.cluster(),
                                    static_cast<int>(scenario_.num_nodes()),
                                    scenario_.cluster_changes()),
                        failures_);
    if (!cluster.has_value()) {
      if (scenario_.profile().empty()) return {};
      return {{scenario_.profile()}, {}, {1}};
    }
    resolved_.cluster = *std::move(cluster);
    KeepFailure(SetClusterFigures(resolved_.label, scenario_,
                                  &resolved_.cluster, &figure_notes_));
    if (!scenario_.slow().empty()) {
      resolved_.cluster.mutable_slow()->MergeFrom(scenario_.slow());
      const absl::Status slow =
          CheckSlowParts(resolved_.label, resolved_.cluster);
      KeepFailure(slow);
      if (!slow.ok()) resolved_.cluster.clear_slow();
    }
    if (resolved_.cluster.groups_size() == 1)
      scenario_.set_num_nodes(resolved_.cluster.groups(0).count());
    const absl::Status enough = CheckNumGpus(
        resolved_.label, scenario_.parallelism(), resolved_.cluster);
    if (fields_are_sound_) KeepFailure(enough);
    if (fields_are_sound_ && enough.ok()) {
      auto placement =
          Keep(Where("parallelism"),
               MakePlacement(resolved_.label, scenario_.parallelism(),
                             NumGpus(resolved_.cluster)),
               failures_);
      if (placement.has_value()) resolved_.placement = *std::move(placement);
    }
    DeviceNames devices = NamesOfDevices(scenario_, resolved_.cluster);
    if (std::count(devices.names.begin(), devices.names.end(), "") == 0) {
      return devices;
    }
    problems_.Add("profile",
                  absl::StrCat("is empty, expected a device profile, because "
                               "the cluster ",
                               scenario_.cluster(),
                               " names no GPU (--profile; weir profile list)"));
    return {};
  }

  void TakeDevice(const std::string& device, double speed) {
    const char* field = scenario_.profile().empty() ? "device" : "profile";
    auto profile =
        Keep(Where(field), calibrate::LoadDeviceProfile(device), failures_);
    if (!profile.has_value()) return;
    KeepFailure(SetDeviceFigures(resolved_.label, scenario_, &*profile,
                                 &figure_notes_));
    AdaptTo(*profile, &scenario_, &resolved_.used_defaults);
    CheckAgainstDevice(problems_, scenario_, resolved_.recipe, *profile);
    if (speed != 1) profile->set_relative_speed(speed);
    if (std::exchange(has_device_, true)) {
      resolved_.other_devices.push_back(*std::move(profile));
    } else {
      resolved_.device = *std::move(profile);
    }
  }

  // Returns the GPUs in use that have the `device`-th profile.
  std::vector<int> UsedGpus(int device) const {
    std::vector<int> gpus = resolved_.placement.gpus;
    if (!resolved_.gpu_device.empty()) {
      std::erase_if(
          gpus, [&](int gpu) { return resolved_.gpu_device[gpu] != device; });
    }
    return gpus;
  }

  void WarnOfMicrobatches() {
    const auto kind = schedules::FindScheduleKind(scenario_.schedule());
    const uint32_t size = scenario_.batch().microbatch_size();
    if (!kind.ok() || !(*kind)->single_samples || size <= 1) return;
    resolved_.warnings.push_back(
        absl::StrCat("schedule ", scenario_.schedule(),
                     " is defined for microbatches of one sample, but "
                     "batch.microbatch_size is ",
                     size));
  }

  void KeepFailure(const absl::Status& status) {
    if (!status.ok()) failures_.push_back(status);
  }

  // Adds warnings, including those about a profile of a different GPU.
  void Warn() {
    WarnOfMicrobatches();
    for (const std::string& note : figure_notes_) {
      resolved_.warnings.push_back(note);
    }
    Software software = resolved_.cluster.software();
    software.MergeFrom(scenario_.software());
    std::vector<const DeviceProfile*> profiles = {&resolved_.device};
    for (const DeviceProfile& other : resolved_.other_devices) {
      profiles.push_back(&other);
    }
    for (size_t i = 0; i < profiles.size(); ++i) {
      for (const std::string& text : ProfileWarnings(*profiles[i], software)) {
        resolved_.warnings.push_back(text);
      }
      const std::string purpose = PurposeWarning(
          *profiles[i], resolved_.cluster, resolved_.runtime.name());
      if (!purpose.empty()) resolved_.warnings.push_back(purpose);
      if (!profiles[i]->has_partition_slowdown()) continue;
      for (const std::string& text :
           PartitionWarnings(*profiles[i], resolved_.cluster,
                             UsedGpus(static_cast<int>(i)))) {
        resolved_.warnings.push_back(text);
      }
    }
    std::set<std::string> devices;
    for (const NodeGroup& group : resolved_.cluster.groups()) {
      const std::string& device = group.node().device();
      if (scenario_.profile().empty() || device == scenario_.profile() ||
          !devices.insert(device).second) {
        continue;
      }
      const auto of_cluster = calibrate::LoadDeviceProfile(device);
      if (!of_cluster.ok()) continue;  // its profile is not needed
      const std::string text = OtherGpuWarning(resolved_.device, *of_cluster);
      if (!text.empty()) resolved_.warnings.push_back(text);
    }
  }

  void TakeRuntime() {
    if (scenario_.runtime().empty()) return;  // the model did not load
    auto runtime = Keep(Where("runtime"),
                        calibrate::LoadRuntime(scenario_.runtime()), failures_);
    if (!runtime.has_value()) return;
    resolved_.runtime = *std::move(runtime);
    KeepFailure(SetRuntimeFigures(resolved_.label, scenario_,
                                  &resolved_.runtime, &figure_notes_));
    FillDefaultsOf(resolved_.runtime, &scenario_, &resolved_.used_defaults);
  }

  // Sets the library of fused attention that runs on every device.
  void ChooseAttention() {
    AttentionKernel kernel = scenario_.training().attention_kernel();
    if (kernel == ATTENTION_UNSPECIFIED) {
      kernel = resolved_.runtime.attention_kernel();
    }
    resolved_.device.set_attention_kernel(kernel);
    for (DeviceProfile& device : resolved_.other_devices) {
      device.set_attention_kernel(kernel);
    }
  }

  Problems& problems_;
  ResolvedScenario& resolved_;
  Scenario& scenario_;
  const bool fields_are_sound_;
  const StageCheck stages_;
  bool has_device_ = false;
  std::vector<absl::Status> failures_;
  std::vector<std::string> figure_notes_;  // one per applied setting
};

}  // namespace

absl::StatusOr<Scenario> LoadScenario(const std::string& name_or_path) {
  ASSIGN_OR_RETURN(const Asset asset,
                   LoadAsset("scenarios/presets", name_or_path));
  Scenario scenario;
  RETURN_IF_ERROR(ParseTextProto(asset.label, asset.contents, &scenario));
  return scenario;
}

absl::StatusOr<ResolvedScenario> ResolveScenario(absl::string_view label,
                                                 const Scenario& scenario) {
  ResolvedScenario resolved;
  resolved.label = std::string(label);
  resolved.scenario = scenario;
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
    RETURN_IF_ERROR(Loader(problems, fields_are_sound, stages,
                           std::move(failures), resolved)
                        .Load());
  } else {
    for (const std::string& setting : scenario.set_figures()) {
      problems.Add(absl::StrCat("--set ", setting),
                   "has no effect on given costs, which use no parameters; "
                   "expected a model and a cluster");
    }
    RETURN_IF_ERROR(Merge(problems, failures));
    const Parallelism& parallelism = resolved.scenario.parallelism();
    ASSIGN_OR_RETURN(resolved.placement,
                     MakePlacement(resolved.label, parallelism,
                                   static_cast<int>(parallelism.pipeline())));
  }
  resolved.num_microbatches = NumMicrobatches(resolved.scenario);
  return resolved;
}

absl::Status ResolveAgain(const Scenario& scenario,
                          ResolvedScenario* resolved) {
  Scenario& mine = resolved->scenario;
  mine = scenario;
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
  FillUnevenSplit(problems, resolved->model, mine.mutable_parallelism());
  CheckAgainstModel(problems, mine, resolved->model);
  std::vector<absl::Status> failures;
  const absl::Status schedule =
      CheckSchedule(resolved->label, mine, problems.empty());
  if (!schedule.ok()) failures.push_back(schedule);
  auto placement = Keep(resolved->label,
                        MakePlacement(resolved->label, mine.parallelism(),
                                      NumGpus(resolved->cluster)),
                        failures);
  RETURN_IF_ERROR(Merge(problems, failures));
  resolved->placement = *std::move(placement);
  resolved->num_microbatches = NumMicrobatches(mine);
  FillHostOptimizerRate(mine, resolved->cluster, &resolved->runtime);
  return absl::OkStatus();
}

}  // namespace weir::scenarios
