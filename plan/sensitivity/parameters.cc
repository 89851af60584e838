// SPDX-License-Identifier: Apache-2.0
#include "plan/sensitivity/parameters.h"

#include <google/protobuf/message.h>

#include "absl/strings/str_cat.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"
#include "calibrate/profile/runtime.h"
#include "plan/sensitivity/solve_factor.h"
#include "scenarios/cluster/cluster.h"
#include "sim/costs/scenario_figures.h"

namespace weir::plan {
namespace {

struct ProfileFigure {
  Parameter::Of of;
  std::string path;
  double relative_error;
};

// Returns the figures of the profiles and of the runtime in the order of
// sim::FiguresOf, which leaves some out.
std::vector<ProfileFigure> ProfileFigures(
    scenarios::ResolvedScenario scenario) {
  std::vector<ProfileFigure> figures;
  const auto add = [&](Parameter::Of of, google::protobuf::Message* message) {
    for (const calibrate::NamedFigure& named : calibrate::FiguresOf(message)) {
      figures.push_back(
          {of, named.path, calibrate::RelativeError(*named.figure)});
    }
  };
  add(Parameter::Of::kDevice, &scenario.device);
  for (DeviceProfile& device : scenario.other_devices) {
    add(Parameter::Of::kDevice, &device);
  }
  add(Parameter::Of::kRuntime, &scenario.runtime);
  return figures;
}

}  // namespace

std::string Parameter::setting() const {
  switch (of) {
    case Of::kRuntime:
      return absl::StrCat("runtime.", path);
    case Of::kCluster:
      return absl::StrCat("cluster.", path);
    case Of::kDevice:
      break;
  }
  return path;
}

std::vector<Parameter> ParametersOf(
    const scenarios::ResolvedScenario& scenario) {
  const std::vector<ProfileFigure> in_profiles = ProfileFigures(scenario);
  std::vector<Parameter> parameters;
  size_t next = 0;
  for (const sim::ScenarioFigure& figure : sim::FiguresOf(scenario)) {
    Parameter& parameter = parameters.emplace_back();
    parameter.owner = figure.owner;
    parameter.path = figure.path;
    parameter.value = figure.value;
    parameter.kind = figure.kind;
    size_t at = next;
    while (at < in_profiles.size() && in_profiles[at].path != figure.path) {
      ++at;
    }
    if (at < in_profiles.size()) {
      parameter.of = in_profiles[at].of;
      parameter.relative_error = in_profiles[at].relative_error;
      next = at + 1;
      continue;
    }
    parameter.of = Parameter::Of::kCluster;
    Figure kind_only;
    kind_only.set_kind(figure.kind);
    parameter.relative_error = calibrate::RelativeError(kind_only);
  }
  return parameters;
}

bool HasValidParameters(const scenarios::ResolvedScenario& scenario) {
  if (!calibrate::ValidateDeviceProfile("", scenario.device).ok()) return false;
  for (const DeviceProfile& device : scenario.other_devices) {
    if (!calibrate::ValidateDeviceProfile("", device).ok()) return false;
  }
  return calibrate::ValidateRuntime("", scenario.runtime).ok() &&
         scenarios::ValidateCluster("", scenario.cluster).ok();
}

double ValidFactor(const scenarios::ResolvedScenario& scenario, int index,
                   double limit) {
  return ValidLimit(limit, [&](double factor) {
    return HasValidParameters(sim::WithFigure(scenario, index, factor));
  });
}

}  // namespace weir::plan
