// SPDX-License-Identifier: Apache-2.0
// The scenario to simulate: a scenario file plus flags. Errors are
// InvalidArgument, or NotFound for a file, preset or schedule that does not
// exist.
#ifndef WEIR_CLI_OPTIONS_OVERRIDES_H_
#define WEIR_CLI_OPTIONS_OVERRIDES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/options/flags.h"
#include "plan/frameworks/import_report.h"
#include "scenarios/scenario.h"
#include "scenarios/scenario.pb.h"

namespace weir::cli {

// Returns the costs of --costs, which are in it ("f=1,b=2") or in a file.
absl::StatusOr<GivenCosts> ReadCosts(const std::string& costs);

// Sets every field that the flags set.
absl::Status Override(const ScenarioFlags& flags, Scenario* scenario);

struct ScenarioRequest {
  std::string label;                    // the file, or "command line"
  Scenario scenario;                    // not resolved
  std::vector<std::string> notes = {};  // for the user
  // Filled from the files of training frameworks:
  std::vector<plan::ImportReport> imports = {};
  uint32_t num_gpus = 0;  // that they use; 0: unknown
  // The data-parallel size of the scenario file if flags for the other sizes
  // replace it; 0: none.
  uint32_t replaced_replicas = 0;
};

// Loads the scenario that the flags name (empty if none) and overrides it.
absl::StatusOr<ScenarioRequest> ApplyOverrides(const ScenarioFlags& flags);

// Does the same with the only schedule of the flags. Returns InvalidArgument if
// there are several.
absl::StatusOr<ScenarioRequest> ApplyAllFlags(const ScenarioFlags& flags);

// Resolves the scenario. Errors name the flags of the command line; warnings
// include the notes of the request and GPUs that are left idle.
absl::StatusOr<scenarios::ResolvedScenario> ResolveRequest(
    const ScenarioFlags& flags, const ScenarioRequest& request);

// Returns InvalidArgument if the schedule name specifies a different number of
// stages per rank than --chunks.
absl::Status CheckChunks(const ScenarioFlags& flags,
                         const std::string& schedule);

// Returns the only scenario of the flags, with its only schedule. With
// `output`, prints what was read from files of frameworks.
absl::StatusOr<scenarios::ResolvedScenario> ResolveFlags(
    const ScenarioFlags& flags, const OutputFlags* output = nullptr);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_OVERRIDES_H_
