// SPDX-License-Identifier: Apache-2.0
// Traces of a real run, read with progress on standard error.
#ifndef WEIR_CLI_WEIR_RECORDED_INPUT_H_
#define WEIR_CLI_WEIR_RECORDED_INPUT_H_

#include "absl/status/statusor.h"
#include "cli/options/flags.h"
#include "results/import/recorded_run.h"

namespace weir::cli {

// Returns the errors of results::ImportTrace.
absl::StatusOr<results::RecordedRun> ReadRecordedRun(const Flags& flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_RECORDED_INPUT_H_
