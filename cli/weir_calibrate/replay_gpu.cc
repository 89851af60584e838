// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/replay_gpu.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/measure/assemble.h"
#include "cli/options/overrides.h"
#include "scenarios/cluster/cluster.h"

namespace weir::cli {

ScenarioFlags ScenarioOf(const ReplayFlags& flags) {
  ScenarioFlags asked = flags.weir.scenario;
  const bool is_default = asked.scenario.empty() && asked.costs.empty();
  // A plan scales the default scenario, whose model may be replaced.
  if (is_default && (flags.plan || asked.overrides.model().empty())) {
    asked.scenario = flags.cpu ? kCpuScenario : kGpuScenario;
  }
  return asked;
}

absl::StatusOr<Provenance> GpuOf(const ReplayFlags& flags,
                                 const Factories& factories) {
  if (flags.memory_bytes == 0 && flags.num_multiprocessors == 0) {
    absl::StatusOr<Provenance> gpu = factories.identify(flags.device);
    return gpu.ok() ? std::move(gpu) : UnavailableGpu(gpu.status());
  }
  Provenance gpu;
  gpu.set_memory_bytes(static_cast<uint64_t>(flags.memory_bytes));
  gpu.set_num_multiprocessors(flags.num_multiprocessors);
  return gpu;
}

absl::StatusOr<bool> NeedsProfile(const ScenarioFlags& flags) {
  if (!flags.overrides.profile().empty() || !flags.costs.empty()) return false;
  ASSIGN_OR_RETURN(const ScenarioRequest request, ApplyOverrides(flags));
  const Scenario& scenario = request.scenario;
  if (!scenario.profile().empty() || scenario.cluster().empty()) return false;
  const absl::StatusOr<Cluster> cluster =
      scenarios::LoadCluster(scenario.cluster());
  if (!cluster.ok()) return false;  // ResolveFlags reports it
  return std::any_of(
      cluster->groups().begin(), cluster->groups().end(),
      [](const NodeGroup& group) { return group.node().device().empty(); });
}

absl::StatusOr<std::string> PresetOf(const Provenance& gpu) {
  std::string remark;
  return calibrate::StartProfileFor(gpu, "bf16", &remark);
}

absl::Status UnavailableGpu(const absl::Status& status) {
  return absl::UnavailableError(
      absl::StrCat(status.message(), " (weir-calibrate doctor)"));
}

}  // namespace weir::cli
