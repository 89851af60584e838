// SPDX-License-Identifier: Apache-2.0
// Messages that name the flags of a command line.
#ifndef WEIR_CLI_OPTIONS_FLAG_TERMS_H_
#define WEIR_CLI_OPTIONS_FLAG_TERMS_H_

#include <string>

#include "absl/status/status.h"
#include "cli/options/flags.h"

namespace weir::cli {

// Returns the status with the fields of the scenario in its message replaced by
// the flags that set them: "--tp is 3" for "parallelism.tensor is 3". With a
// scenario file, replaces only fields that flags set, since the others are in
// the file.
absl::Status InFlagTerms(const absl::Status& status,
                         const ScenarioFlags& flags);

// The same for a warning.
std::string InFlagTerms(std::string warning, const ScenarioFlags& flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_FLAG_TERMS_H_
