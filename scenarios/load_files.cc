// SPDX-License-Identifier: Apache-2.0
#include "scenarios/load_files.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/runtime.h"
#include "models/model.h"
#include "models/model_limits.h"
#include "models/recipe.h"
#include "scenarios/check_devices.h"
#include "scenarios/check_scenario.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/default_set.h"
#include "scenarios/degraded_parts.h"
#include "scenarios/failures.h"
#include "scenarios/fill_defaults.h"
#include "scenarios/host_rate.h"
#include "scenarios/place_scenario.h"
#include "scenarios/profile_warnings.h"
#include "scenarios/scenario.h"
#include "scenarios/set_figures.h"
#include "scenarios/uneven_split.h"
#include "schedules/registry.h"

namespace weir::scenarios {
namespace {

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
    return MergeFailures(problems_, failures_);
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
    auto model = KeepValue(Where("model"), ModelOfScenario(), failures_);
    if (!model.has_value()) return;
    resolved_.model = *std::move(model);
    SetMtpModules(problems_, scenario_.training(), &resolved_.model);
    SetRouting(problems_, scenario_.training(), &resolved_.model);
    auto set = KeepValue(Where("defaults"),
                         DefaultSetOf(scenario_, resolved_.model), failures_);
    if (!set.has_value()) return;
    resolved_.default_set = *std::move(set);
    TakeRecipe();
    FillFrom(resolved_.default_set, resolved_.model, &scenario_,
             &resolved_.used_defaults);
    if (fields_are_sound_) {
      FillUnevenSplit(problems_, resolved_.model,
                      scenario_.mutable_parallelism());
    }
    if (fields_are_sound_) {
      CheckAgainstModel(problems_, scenario_, resolved_.model, stages_);
    }
  }

  void TakeRecipe() {
    const std::string& name = scenario_.training().recipe();
    if (!name.empty()) {
      auto recipe = KeepValue(Where("training.recipe"),
                              models::LoadRecipe(name), failures_);
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
    auto cluster =
        KeepValue(Where("cluster"),
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
    for (const absl::Status& failure :
         AddDegradedParts(resolved_.label, scenario_, &resolved_.cluster)) {
      KeepFailure(failure);
    }
    if (resolved_.cluster.groups_size() == 1)
      scenario_.set_num_nodes(resolved_.cluster.groups(0).count());
    const absl::Status enough = CheckNumGpus(
        resolved_.label, scenario_.parallelism(), resolved_.cluster);
    if (fields_are_sound_) KeepFailure(enough);
    if (fields_are_sound_ && enough.ok()) {
      auto placement =
          KeepValue(Where("parallelism"),
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
    auto profile = KeepValue(Where(field), calibrate::LoadDeviceProfile(device),
                             failures_);
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
    auto runtime =
        KeepValue(Where("runtime"), calibrate::LoadRuntime(scenario_.runtime()),
                  failures_);
    if (!runtime.has_value()) return;
    resolved_.runtime = *std::move(runtime);
    ScaleHostTimes(resolved_.device, &resolved_.runtime);
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

void SetRouting(Problems& problems, const Training& training, Model* model) {
  const bool any = training.has_moe_router_num_groups() ||
                   training.has_moe_router_group_topk() ||
                   training.has_moe_expert_capacity_factor() ||
                   training.has_moe_pad_expert_input_to_capacity();
  if (!any) return;
  if (model->transformer().num_experts() == 0) {
    problems.Add(training.has_moe_router_num_groups()
                     ? "training.moe_router_num_groups"
                 : training.has_moe_router_group_topk()
                     ? "training.moe_router_group_topk"
                 : training.has_moe_expert_capacity_factor()
                     ? "training.moe_expert_capacity_factor"
                     : "training.moe_pad_expert_input_to_capacity",
                 "is given, expected a model with experts");
    return;
  }
  Transformer& transformer = *model->mutable_transformer();
  if (training.has_moe_router_num_groups()) {
    transformer.set_num_router_groups(training.moe_router_num_groups());
    if (training.moe_router_num_groups() <= 1) {
      transformer.clear_router_groups_per_token();
    }
  }
  if (training.has_moe_router_group_topk()) {
    transformer.set_router_groups_per_token(training.moe_router_group_topk());
  }
  if (training.has_moe_expert_capacity_factor()) {
    transformer.set_capacity_factor(training.moe_expert_capacity_factor());
    // As in Megatron-LM, unless the next option says otherwise.
    transformer.set_unpadded_capacity(transformer.capacity_factor() > 0);
  }
  if (training.has_moe_pad_expert_input_to_capacity()) {
    const bool pads = training.moe_pad_expert_input_to_capacity();
    if (pads && transformer.capacity_factor() == 0) {
      problems.Add("training.moe_pad_expert_input_to_capacity",
                   "is true, which requires "
                   "training.moe_expert_capacity_factor");
    }
    transformer.set_unpadded_capacity(!pads &&
                                      transformer.capacity_factor() > 0);
  }
  const auto name = [](absl::string_view native) -> std::string {
    if (native == "num_router_groups") return "training.moe_router_num_groups";
    if (native == "router_groups_per_token") {
      return "training.moe_router_group_topk";
    }
    return absl::StrCat("the model's ", native);
  };
  models::CheckRouterGroups(transformer, name, &problems);
}

absl::Status LoadFiles(Problems& problems, bool fields_are_sound,
                       StageCheck stages, std::vector<absl::Status> failures,
                       ResolvedScenario& resolved) {
  return Loader(problems, fields_are_sound, stages, std::move(failures),
                resolved)
      .Load();
}

}  // namespace weir::scenarios
