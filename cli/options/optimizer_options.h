// SPDX-License-Identifier: Apache-2.0
// Options of the batch and the optimizer.
#ifndef WEIR_CLI_OPTIONS_OPTIMIZER_OPTIONS_H_
#define WEIR_CLI_OPTIONS_OPTIMIZER_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "cli/options/flags.h"

namespace weir::cli {

// Adds the global batch size, the optimizer, what of its states is sharded or
// kept on the host, and adapters. Requires: the flags outlive `app`.
void AddOptimizer(CLI::App* app, ScenarioFlags* flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_OPTIMIZER_OPTIONS_H_
