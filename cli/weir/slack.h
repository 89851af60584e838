// SPDX-License-Identifier: Apache-2.0
// The slack of simulated schedules.
#ifndef WEIR_CLI_WEIR_SLACK_H_
#define WEIR_CLI_WEIR_SLACK_H_

#include <vector>

#include "absl/status/statusor.h"
#include "cli/options/flags.h"
#include "cli/weir/several_runs.h"
#include "plan/stragglers/slack_views.h"

namespace weir::cli {

// Simulates one job after the other, with progress. Returns the first error.
absl::StatusOr<std::vector<plan::NamedSlack>> SlackOfJobs(
    const std::vector<Job>& jobs, const OutputFlags& output);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_SLACK_H_
