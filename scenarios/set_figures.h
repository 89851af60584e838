// SPDX-License-Identifier: Apache-2.0
// Applies Scenario.set_figures (--set): parameters that replace those of the
// device profiles, the runtime and the cluster.
//
//   gemm.sustained_rate=0.85            every device profile of the scenario
//   device.memory_efficiency=0.9+-5%    the same, with an uncertainty
//   runtime.exchange_seconds=2e-4       the runtime
//   runtime.unfused_softmax=true        a switch of it
//   cluster.fabric.latency_seconds=1e-6 the cluster; "[]" in a path: all
//                                       elements, "[0]": the first
#ifndef WEIR_SCENARIOS_SET_FIGURES_H_
#define WEIR_SCENARIOS_SET_FIGURES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "calibrate/profile/device_profile.pb.h"
#include "calibrate/profile/runtime.pb.h"
#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Returns InvalidArgument "is x, expected FIGURE=VALUE" unless the text has
// this form.
absl::Status CheckFigureSetting(absl::string_view text);

// Apply the settings of `scenario` that belong to the message, check the
// result, and append a line per setting that changes a value to `notes`. Return
// InvalidArgument with all settings that are unknown or invalid; messages begin
// with `label` and contain the setting.
absl::Status SetDeviceFigures(absl::string_view label, const Scenario& scenario,
                              DeviceProfile* device,
                              std::vector<std::string>* notes);
absl::Status SetRuntimeFigures(absl::string_view label,
                               const Scenario& scenario, Runtime* runtime,
                               std::vector<std::string>* notes);
absl::Status SetClusterFigures(absl::string_view label,
                               const Scenario& scenario, Cluster* cluster,
                               std::vector<std::string>* notes);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_SET_FIGURES_H_
