// SPDX-License-Identifier: Apache-2.0
// Parses the arguments of weir-calibrate. The only file here that uses CLI11.
#ifndef WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_PARSE_H_
#define WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_PARSE_H_

#include "absl/status/statusor.h"
#include "cli/weir_calibrate/calibrate_flags.h"

namespace weir::cli {

// Returns InvalidArgument that lists all problems, including all unknown
// options with the closest known ones.
absl::StatusOr<CalibrateLine> ParseCalibrateArguments(int argc,
                                                      const char* const* argv);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_PARSE_H_
