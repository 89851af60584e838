// SPDX-License-Identifier: Apache-2.0
// Options that read the scenario from files of training frameworks.
#ifndef WEIR_CLI_OPTIONS_IMPORT_OPTIONS_H_
#define WEIR_CLI_OPTIONS_IMPORT_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "cli/options/flags.h"

namespace weir::cli {

// Adds the files of frameworks that replace the scenario. Requires: the flags
// outlive `app`.
void AddImports(CLI::App* app, ScenarioFlags* flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_IMPORT_OPTIONS_H_
