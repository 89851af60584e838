// SPDX-License-Identifier: Apache-2.0
// The options of `weir-calibrate replay`: those of `weir simulate`, and its
// own.
#ifndef WEIR_CLI_WEIR_CALIBRATE_REPLAY_OPTIONS_H_
#define WEIR_CLI_WEIR_CALIBRATE_REPLAY_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/options/options.h"
#include "cli/weir_calibrate/calibrate_flags.h"

namespace weir::cli {

// Requires: `flags` outlives the returned options.
Options OptionsOfReplay(ReplayFlags* flags);

// Parses the words after "replay". Errors as for ParseOptions, and
// contradictions.
absl::StatusOr<CalibrateLine> ParseReplay(
    const std::vector<std::string>& words);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_CALIBRATE_REPLAY_OPTIONS_H_
