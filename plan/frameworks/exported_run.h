// SPDX-License-Identifier: Apache-2.0
// Files with which a framework starts a simulated run.
#ifndef WEIR_PLAN_FRAMEWORKS_EXPORTED_RUN_H_
#define WEIR_PLAN_FRAMEWORKS_EXPORTED_RUN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/frameworks/setting.h"
#include "scenarios/scenario.h"

namespace weir::plan {

enum class Framework { kMegatron, kTorchtitan, kNemo };

// "megatron", "torchtitan", "nemo".
const std::vector<std::string>& FrameworkNames();

// Returns the framework of a name, or InvalidArgument for an unknown one.
absl::StatusOr<Framework> FindFramework(absl::string_view name);

// Returns the framework that a runtime preset describes; Megatron-LM if none.
Framework FrameworkOfRuntime(absl::string_view runtime);

struct ExportedRun {
  // ".args", ".toml" or ".yaml". Comments begin with '#'.
  std::string suffix;
  std::string contents;
  // The file names "<stem>.csv", PyTorch's CSV of the order of the passes.
  bool needs_csv = false;
};

// Returns the suffix of a framework's file.
std::string SuffixOf(Framework framework);

// Returns why the framework cannot run what was simulated. Empty: it can.
std::vector<std::string> ObstaclesOf(Framework framework,
                                     const scenarios::ResolvedScenario& run);

// Returns the file that starts the simulated run. Its first lines contain the
// command that reads it back, with the options of `run` that the framework does
// not have. `stem` is the file's name without suffix. Returns
// FailedPrecondition with the obstacles if there are any, and Internal if the
// framework's table would refuse a setting.
absl::StatusOr<ExportedRun> ExportRun(Framework framework,
                                      const scenarios::ResolvedScenario& run,
                                      const std::string& stem);

// Returns the options with which `weir simulate` reads the file of `framework`
// back as the same run: cluster, and whatever else the file cannot state. Files
// have absolute paths.
std::vector<std::string> ReadBackOptions(
    Framework framework, const scenarios::ResolvedScenario& run);

// Parts of the exporters:

std::vector<std::string> NemoObstacles(const scenarios::ResolvedScenario& run);
std::vector<Setting> NemoSettingsOf(const scenarios::ResolvedScenario& run);

std::vector<std::string> TorchtitanObstacles(
    const scenarios::ResolvedScenario& run);
// `csv`: file with the order of the passes, for schedules that PyTorch does not
// have under a name.
std::vector<Setting> TorchtitanSettingsOf(
    const scenarios::ResolvedScenario& run, const std::string& csv);
// Returns true if the order of the passes needs a CSV.
bool NeedsCsv(const scenarios::ResolvedScenario& run);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_EXPORTED_RUN_H_
