// SPDX-License-Identifier: Apache-2.0
// Turns the arguments of weir-calibrate into flags. The only file here that
// knows CLI11.
#ifndef WEIR_CALIBRATE_PROGRAM_PARSE_H_
#define WEIR_CALIBRATE_PROGRAM_PARSE_H_

#include "absl/status/statusor.h"
#include "calibrate/program/flags.h"

namespace weir {

// InvalidArgument names what is wrong and, of unknown options all, the nearest
// good ones.
absl::StatusOr<CalibrateLine> ParseCalibrateArguments(int argc,
                                                      const char* const* argv);

}  // namespace weir

#endif  // WEIR_CALIBRATE_PROGRAM_PARSE_H_
