// SPDX-License-Identifier: Apache-2.0
// Options of number formats.
#ifndef WEIR_CLI_OPTIONS_PRECISION_OPTIONS_H_
#define WEIR_CLI_OPTIONS_PRECISION_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "cli/options/flags.h"
#include "scenarios/scenario.pb.h"

namespace weir::cli {

// Adds --precision and the spellings of Megatron-LM, which set fields of
// `flags->overrides.training`. --bf16 and --fp16 select the 16-bit format, also
// if a recipe is given. The order of the flags has no effect.
void AddPrecision(CLI::App* app, ScenarioFlags* flags);

// Adds the flags that state whether gradients are fp32.
void AddGradientFormat(CLI::App* app, ScenarioFlags* flags);

// Returns InvalidArgument, with both flags, if two of them contradict each
// other.
absl::Status CheckFormats(const FormatFlags& formats);

// Applies the options to a scenario's training before `overrides` is merged
// into it: a precision and a recipe replace each other.
void ReplacePrecision(const Training& overrides, Training* training);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_PRECISION_OPTIONS_H_
