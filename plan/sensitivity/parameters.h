// SPDX-License-Identifier: Apache-2.0
// The model parameters of a scenario with their uncertainties.
#ifndef WEIR_PLAN_SENSITIVITY_PARAMETERS_H_
#define WEIR_PLAN_SENSITIVITY_PARAMETERS_H_

#include <string>
#include <vector>

#include "calibrate/profile/figure.pb.h"
#include "scenarios/scenario.h"

namespace weir::plan {

struct Parameter {
  enum class Of { kDevice, kRuntime, kCluster };
  Of of = Of::kDevice;
  std::string owner;  // "H100-SXM5-80GB"
  std::string path;   // inside the owner: "exchange_seconds"
  double value = 0;
  Figure::Kind kind = Figure::KIND_UNSPECIFIED;
  // One standard deviation of the logarithm, see calibrate::RelativeError.
  double relative_error = 0;

  // Returns the path for --set: "runtime.exchange_seconds".
  std::string setting() const;
};

// Returns the parameters in the order of sim::FiguresOf(scenario).
std::vector<Parameter> ParametersOf(
    const scenarios::ResolvedScenario& scenario);

// Returns whether the device profiles, the runtime and the cluster are valid,
// which those of a scenario with changed parameters may not be.
bool HasValidParameters(const scenarios::ResolvedScenario& scenario);

// Returns the factor between 1 and `limit` closest to `limit` by which
// parameter `index` of ParametersOf can be multiplied so that it is still
// valid.
double ValidFactor(const scenarios::ResolvedScenario& scenario, int index,
                   double limit);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SENSITIVITY_PARAMETERS_H_
