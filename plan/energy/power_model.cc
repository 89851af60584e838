// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/power_model.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/assets.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/textproto.h"

namespace weir::plan {

absl::StatusOr<PowerModel> LoadPowerModel(const std::string& name_or_path) {
  ASSIGN_OR_RETURN(const Asset asset, LoadAsset(kPowerFolder, name_or_path));
  PowerModel model;
  RETURN_IF_ERROR(ParseTextProto(asset.label, asset.contents, &model));
  RETURN_IF_ERROR(ValidatePowerModel(asset.label, model));
  return model;
}

absl::Status ValidatePowerModel(absl::string_view label,
                                const PowerModel& model) {
  constexpr double kMostWatts = 1e5;
  Problems problems(label);
  problems.CheckRange("compute_watts.value", model.compute_watts().value(),
                      1e-3, kMostWatts);
  problems.CheckRange("communication_watts.value",
                      model.communication_watts().value(), 1e-3, kMostWatts);
  problems.CheckRange("waiting_watts.value", model.waiting_watts().value(),
                      1e-3, kMostWatts);
  problems.CheckRange("node_watts.value", model.node_watts().value(), 0,
                      kMostWatts);
  for (int i = 0; i < model.clocks_size(); ++i) {
    const PowerModel::Clock& clock = model.clocks(i);
    const std::string path = absl::StrCat("clocks[", i, "]");
    const PowerModel::Clock* before = i > 0 ? &model.clocks(i - 1) : nullptr;
    problems.CheckRange(path + ".megahertz", clock.megahertz(), 1,
                        before != nullptr ? before->megahertz() : 1e5);
    const auto check_part = [&](const std::string& field, double part,
                                double high) {
      problems.CheckRange(path + field, part, i == 0 ? 1 : 1e-6, high);
    };
    check_part(".speed.value", clock.speed().value(),
               before != nullptr ? before->speed().value() : 1);
    check_part(".power.value", clock.power().value(),
               before != nullptr ? before->power().value() : 1);
  }
  return problems.ToStatus();
}

std::string OtherDevices(const PowerModel& model,
                         std::set<std::string> devices) {
  std::erase_if(devices, [&](const std::string& name) {
    return absl::StartsWith(name, model.device());
  });
  if (devices.empty()) return "";
  return absl::StrCat("the power model is of ", model.device(),
                      ", the cluster has ", absl::StrJoin(devices, ", "));
}

}  // namespace weir::plan
