// SPDX-License-Identifier: Apache-2.0
// Options of number formats.
#ifndef WEIR_CLI_OPTIONS_PRECISION_OPTIONS_H_
#define WEIR_CLI_OPTIONS_PRECISION_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "scenarios/scenario.pb.h"

namespace weir::cli {

// Adds --precision and the spellings of Megatron-LM, which set fields of
// `scenario`'s training.
void AddPrecision(CLI::App* app, Scenario* scenario);

// Applies the options to a scenario's training before `overrides` is merged
// into it: a precision and a recipe replace each other.
void ReplacePrecision(const Training& overrides, Training* training);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_PRECISION_OPTIONS_H_
