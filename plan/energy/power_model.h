// SPDX-License-Identifier: Apache-2.0
// Power models: presets and files.
#ifndef WEIR_PLAN_ENERGY_POWER_MODEL_H_
#define WEIR_PLAN_ENERGY_POWER_MODEL_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/energy/power.pb.h"

namespace weir::plan {

// Presets of weir.PowerModel.
inline constexpr absl::string_view kPowerFolder = "plan/energy/presets";

// Loads a preset or a textproto, and checks it. Returns NotFound if there is
// neither, InvalidArgument if it is invalid.
absl::StatusOr<PowerModel> LoadPowerModel(const std::string& name_or_path);

// Reports all problems at once, each with its field. Returns InvalidArgument
// with them.
absl::Status ValidatePowerModel(absl::string_view label,
                                const PowerModel& model);

// Returns "the power model is of X, the cluster has Y", or "" if it is for all
// of these devices.
std::string OtherDevices(const PowerModel& model,
                         std::set<std::string> devices);

}  // namespace weir::plan

#endif  // WEIR_PLAN_ENERGY_POWER_MODEL_H_
