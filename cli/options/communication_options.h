// SPDX-License-Identifier: Apache-2.0
// Options of the communication between ranks.
#ifndef WEIR_CLI_OPTIONS_COMMUNICATION_OPTIONS_H_
#define WEIR_CLI_OPTIONS_COMMUNICATION_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "cli/options/flags.h"

namespace weir::cli {

// Adds the options of sends, gradient reductions and exchanges of tokens, and
// of the bytes of stashed weights. Requires: the flags outlive `app`.
void AddCommunication(CLI::App* app, ScenarioFlags* flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_COMMUNICATION_OPTIONS_H_
