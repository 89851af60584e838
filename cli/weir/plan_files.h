// SPDX-License-Identifier: Apache-2.0
// "weir plan --out": plans as input files of other programs.
#ifndef WEIR_CLI_WEIR_PLAN_FILES_H_
#define WEIR_CLI_WEIR_PLAN_FILES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "cli/options/flags.h"
#include "plan/search/plan.pb.h"

namespace weir::cli {

// Checks, before hours of search, that the files of `num_plans` plans (0: the
// usual number) can be written to the folder --out. Returns InvalidArgument if
// not.
absl::Status CheckPlanFiles(const OutputFlags& output, uint32_t num_plans);

// Writes the plans to the folder --out, best plan first, and removes the files
// that an earlier run wrote there for plans with the same or higher numbers.
// Does nothing without --out. Returns InvalidArgument if a file cannot be
// written.
absl::Status WritePlanFiles(const OutputFlags& output,
                            const std::vector<Plan>& plans);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_PLAN_FILES_H_
