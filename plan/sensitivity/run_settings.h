// SPDX-License-Identifier: Apache-2.0
// Settings of a run that a scenario may state wrongly, as explanations of a
// measured time.
#ifndef WEIR_PLAN_SENSITIVITY_RUN_SETTINGS_H_
#define WEIR_PLAN_SENSITIVITY_RUN_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "results/views/explanation.h"
#include "scenarios/scenario.h"
#include "sim/fast/fast_simulator.h"

namespace weir::plan {

// A scenario that differs from the run in one setting.
struct RunSetting {
  std::string text;  // as options: "--recompute full"
  Scenario scenario;
};

// Returns the scenario with each other recomputation, blocking or overlapped
// transfers and gradient reductions, with or without fp32 gradients and fused
// attention, and with one GPU at 80 % of its speed.
std::vector<RunSetting> OtherSettings(
    const scenarios::ResolvedScenario& scenario);

// Returns the estimated time of a batch, or 0 if the scenario is invalid.
double SecondsWith(const RunSetting& setting, absl::string_view label,
                   sim::FastSimulator* simulator);

// Returns the settings whose times are nearer to `measured_seconds` than
// `batch_seconds` is, nearest first.
std::vector<results::SettingCause> NearerSettings(
    std::vector<results::SettingCause> settings, double batch_seconds,
    double measured_seconds);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SENSITIVITY_RUN_SETTINGS_H_
