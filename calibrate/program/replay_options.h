// SPDX-License-Identifier: Apache-2.0
// The options of `weir-calibrate replay`: those of `weir simulate`, and its
// own.
#ifndef WEIR_CALIBRATE_PROGRAM_REPLAY_OPTIONS_H_
#define WEIR_CALIBRATE_PROGRAM_REPLAY_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/program/flags.h"
#include "cli/options.h"

namespace weir {

// Requires: `flags` outlives the returned options.
Options OptionsOfReplay(ReplayFlags* flags);

// Parses the words after "replay". Errors as for ParseOptions, and
// contradictions.
absl::StatusOr<CalibrateLine> ParseReplay(
    const std::vector<std::string>& words);

}  // namespace weir

#endif  // WEIR_CALIBRATE_PROGRAM_REPLAY_OPTIONS_H_
