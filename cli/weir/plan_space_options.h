// SPDX-License-Identifier: Apache-2.0
// Options of "plan" that restrict the search space.
#ifndef WEIR_CLI_WEIR_PLAN_SPACE_OPTIONS_H_
#define WEIR_CLI_WEIR_PLAN_SPACE_OPTIONS_H_

#include "cli/options/add_option.h"
#include "cli/options/flags.h"

namespace weir::cli {

void AddPlanSpace(CLI::App* app, PlanFlags* plan);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_PLAN_SPACE_OPTIONS_H_
