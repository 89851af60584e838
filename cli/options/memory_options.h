// SPDX-License-Identifier: Apache-2.0
// Options of techniques that save memory.
#ifndef WEIR_CLI_OPTIONS_MEMORY_OPTIONS_H_
#define WEIR_CLI_OPTIONS_MEMORY_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "scenarios/scenario.pb.h"

namespace weir::cli {

// Adds the details of recomputation, by Megatron-LM's names.
void AddRecomputation(CLI::App* app, Scenario* scenario);

// Adds copies of activations and optimizer states to the host.
void AddOffload(CLI::App* app, Scenario* scenario);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_MEMORY_OPTIONS_H_
