// SPDX-License-Identifier: Apache-2.0
// Scenarios from files of training frameworks.
#ifndef WEIR_CLI_OPTIONS_IMPORTS_H_
#define WEIR_CLI_OPTIONS_IMPORTS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/options/flags.h"
#include "cli/options/overrides.h"

namespace weir::cli {

// Returns true if the flags name a file of a framework.
bool HasImports(const ImportFlags& flags);

// Reads the files that the flags name, DeepSpeed's after the others or after
// the scenario. Fails if they name several that describe the same settings.
absl::StatusOr<ScenarioRequest> ReadImports(const ScenarioFlags& flags);

// Returns InvalidArgument if the cluster does not have the GPUs of the imported
// run, unless the flags replaced its nodes or state the GPUs to use.
absl::Status CheckImportedGpus(const ScenarioRequest& request,
                               const Scenario& scenario);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_IMPORTS_H_
