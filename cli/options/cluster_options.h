// SPDX-License-Identifier: Apache-2.0
// Options of the cluster, its network and the profiles of its software and
// GPUs.
#ifndef WEIR_CLI_OPTIONS_CLUSTER_OPTIONS_H_
#define WEIR_CLI_OPTIONS_CLUSTER_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "cli/options/flags.h"

namespace weir::cli {

// Requires of all functions: the flags outlive `app`.

// Adds all options of the cluster: those below, the runtime, the device profile
// and changes of their parameters.
void AddCluster(CLI::App* app, ScenarioFlags* flags);

// Adds --nodes.
void AddNodes(CLI::App* app, ScenarioFlags* flags);

// Adds the options that change the cluster's network (ClusterChanges).
void AddNetwork(CLI::App* app, ScenarioFlags* flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_CLUSTER_OPTIONS_H_
