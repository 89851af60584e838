// SPDX-License-Identifier: Apache-2.0
// Scenarios from files of training frameworks.
#ifndef WEIR_CLI_OPTIONS_IMPORTS_H_
#define WEIR_CLI_OPTIONS_IMPORTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/options/flags.h"
#include "cli/options/overrides.h"
#include "plan/frameworks/import_report.h"

namespace weir::cli {

// Returns true if the flags name a file of a framework.
bool HasImports(const ImportFlags& flags);

// Reads the files that the flags name, DeepSpeed's after the others or after
// the scenario. Returns InvalidArgument if they name several that describe the
// same settings or a file is invalid, NotFound if a file does not exist.
absl::StatusOr<ScenarioRequest> ReadImports(const ScenarioFlags& flags);

// Returns InvalidArgument if the cluster does not have the GPUs of the imported
// run, unless the flags replaced its nodes or state the GPUs to use.
absl::Status CheckImportedGpus(const ScenarioRequest& request,
                               const Scenario& scenario);

// Where an imported file and flags set the same parameter, keeps the value of
// the flags. A note names the setting of the file if the values differ.
void ReplaceImportedFigures(const Scenario& overrides,
                            ScenarioRequest* request);

// Removes the warnings that files, not users, replaced parameters.
void DropImportedWarnings(const std::vector<plan::ImportReport>& imports,
                          std::vector<std::string>* warnings);

// Prints what was read, ignored and assumed of each file, unless --quiet.
void PrintImports(const ScenarioRequest& request, const OutputFlags& output);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_IMPORTS_H_
