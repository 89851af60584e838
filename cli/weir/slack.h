// SPDX-License-Identifier: Apache-2.0
// The slack of simulated schedules.
#ifndef WEIR_CLI_WEIR_SLACK_H_
#define WEIR_CLI_WEIR_SLACK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/options/flags.h"
#include "cli/weir/several_runs.h"
#include "plan/stragglers/slack_views.h"

namespace weir::cli {

// Returns the name of a schedule's row, as in compare.
std::string RowLabel(const std::string& schedule, int chunks);

// Returns the "config" of JSON output: an object with the resolved scenarios.
std::string ConfigJson(const std::vector<Job>& jobs);

// Simulates one job after the other, with progress. Returns the first error,
// one of SlackOfScenario.
absl::StatusOr<std::vector<plan::NamedSlack>> SlackOfJobs(
    const std::vector<Job>& jobs, const OutputFlags& output);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_SLACK_H_
