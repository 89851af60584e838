// SPDX-License-Identifier: Apache-2.0
// "weir plan --algorithm": planners of papers.
#ifndef WEIR_CLI_WEIR_PLAN_PAPERS_H_
#define WEIR_CLI_WEIR_PLAN_PAPERS_H_

#include "cli/options/flags.h"

namespace weir::cli {

// Runs planners and prints their plans; returns the exit code.
int RunPaperPlanners(const Flags& flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_PLAN_PAPERS_H_
