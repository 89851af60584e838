// SPDX-License-Identifier: Apache-2.0
// The files of "simulate --emit".
#ifndef WEIR_CLI_WEIR_EMIT_H_
#define WEIR_CLI_WEIR_EMIT_H_

#include "absl/status/status.h"
#include "cli/options/flags.h"
#include "scenarios/scenario.h"

namespace weir::cli {

// Checks, before the simulation, that the files can be written. Prints a
// warning with the reasons about each framework that cannot run the scenario,
// for which no file will be written. Returns InvalidArgument if a file cannot
// be written, and the Internal errors of ExportRun.
absl::Status CheckEmitted(const scenarios::ResolvedScenario& scenario,
                          const OutputFlags& output);

// Writes "<emit_to>.args", ".toml" or ".yaml" for each framework, and the
// schedule as ".csv" where a file names it. Prints a note about each file.
// Returns InvalidArgument if one cannot be written, and the errors of
// CheckEmitted.
absl::Status WriteEmitted(const scenarios::ResolvedScenario& scenario,
                          const OutputFlags& output);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_EMIT_H_
