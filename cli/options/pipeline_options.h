// SPDX-License-Identifier: Apache-2.0
// Options of the pipeline and its schedule.
#ifndef WEIR_CLI_OPTIONS_PIPELINE_OPTIONS_H_
#define WEIR_CLI_OPTIONS_PIPELINE_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "cli/options/flags.h"

namespace weir::cli {

// Requires of all functions: the flags outlive `app`.

// Adds the numbers of ranks and of stages per rank. `pipeline` is shown as the
// default number of ranks.
void AddPipeline(CLI::App* app, const std::string& pipeline,
                 ScenarioFlags* flags);

// Adds the schedule, or with `several` a list of schedules, the costs that
// replace a model, and the numbers of microbatches and batches.
void AddSchedule(CLI::App* app, bool several, ScenarioFlags* flags);

// Adds the numbers of microbatches and batches. `microbatches` and `batches`
// are shown as the defaults.
void AddMicrobatches(CLI::App* app, const std::string& microbatches,
                     const std::string& batches, ScenarioFlags* flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_PIPELINE_OPTIONS_H_
