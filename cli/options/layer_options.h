// SPDX-License-Identifier: Apache-2.0
// Options that change the work of a layer.
#ifndef WEIR_CLI_OPTIONS_LAYER_OPTIONS_H_
#define WEIR_CLI_OPTIONS_LAYER_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "cli/options/flags.h"

namespace weir::cli {

// Requires of all functions: the flags outlive `app`.

// Adds all of them, for "model show", and --defaults.
void AddLayerWork(CLI::App* app, ScenarioFlags* flags);

// Adds those that "plan" does not search, and --defaults.
void AddGivenLayerWork(CLI::App* app, ScenarioFlags* flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_LAYER_OPTIONS_H_
