// SPDX-License-Identifier: Apache-2.0
// Options of the replicas, the GPU of each rank and the layers of each stage.
#ifndef WEIR_CLI_OPTIONS_PLACEMENT_OPTIONS_H_
#define WEIR_CLI_OPTIONS_PLACEMENT_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "cli/options/flags.h"

namespace weir::cli {

// Adds all of them. Requires: the flags outlive `app`.
void AddPlacement(CLI::App* app, ScenarioFlags* flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_PLACEMENT_OPTIONS_H_
