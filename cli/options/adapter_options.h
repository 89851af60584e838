// SPDX-License-Identifier: Apache-2.0
// Options of low-rank adapters, Muon, the exchange of tokens between experts
// and the formats of attention and dispatch.
#ifndef WEIR_CLI_OPTIONS_ADAPTER_OPTIONS_H_
#define WEIR_CLI_OPTIONS_ADAPTER_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "cli/options/flags.h"
#include "scenarios/scenario.pb.h"

namespace weir::cli {

void AddAdapters(CLI::App* app, Scenario* scenario);
void AddMuon(CLI::App* app, Scenario* scenario);
void AddCudaGraphs(CLI::App* app, Scenario* scenario);
void AddRouting(CLI::App* app, Scenario* scenario);
void AddTokenDispatcher(CLI::App* app, ScenarioFlags* flags);
// Adds the exchanges and collectives that may overlap with kernels.
void AddOverlaps(CLI::App* app, Scenario* scenario);
void AddOtherFormats(CLI::App* app, Scenario* scenario);

// Returns InvalidArgument if flags name different token dispatchers.
absl::Status CheckTokenDispatcher(const ScenarioFlags& flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_ADAPTER_OPTIONS_H_
