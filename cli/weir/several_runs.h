// SPDX-License-Identifier: Apache-2.0
// Simulates several schedules of one scenario.
#ifndef WEIR_CLI_WEIR_SEVERAL_RUNS_H_
#define WEIR_CLI_WEIR_SEVERAL_RUNS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/exit_code.h"
#include "cli/options/flags.h"
#include "results/result.pb.h"
#include "scenarios/scenario.h"
#include "schedules/schedule.h"

namespace weir::cli {

struct Job {
  scenarios::ResolvedScenario scenario;
  // Set if generating it may take long: its order depends on costs.
  std::optional<schedules::Schedule> schedule;
};

struct ToSimulate {
  std::vector<Job> jobs;
  absl::Status refused;  // errors of schedules that cannot be simulated
};

struct Outcome {
  std::vector<Result> results;
  // If interrupted: names the missing schedules.
  std::vector<std::string> warnings;
  int exit_code = kExitOk;  // the worst of the failed simulations
};

// Returns true if any flag describes a scenario, besides its file or preset.
bool HasScenarioFlags(const ScenarioFlags& flags);

// Checks every schedule before the first one is simulated, and the output
// files. Returns the errors of CheckOutputs and ApplyOverrides, or one error
// for all schedules if none can be simulated or one is unknown.
absl::StatusOr<ToSimulate> ResolveAll(const Flags& flags);

// Simulates one job after the other. Reports failures at once and continues.
// Ctrl-C keeps the results so far.
Outcome SimulateAll(const std::vector<Job>& jobs, const std::string& flops,
                    const OutputFlags& output);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_SEVERAL_RUNS_H_
