// SPDX-License-Identifier: Apache-2.0
// Scenario file plus flags: the question to the simulator.
#ifndef WEIR_CLI_OVERRIDES_H_
#define WEIR_CLI_OVERRIDES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/flags.h"
#include "scenarios/scenario.h"
#include "scenarios/scenario.pb.h"

namespace weir {

// What --costs gives: the costs themselves, "f=1,b=2", or a file of them.
absl::StatusOr<TextbookCosts> ReadCosts(const std::string& costs);

// Every field that the flags set wins.
absl::Status Override(const ScenarioFlags& flags, Scenario* scenario);

struct Question {
  std::string label;                    // the file, or "command line"
  Scenario scenario;                    // not resolved
  std::vector<std::string> notes = {};  // for the user
};

// Loads the scenario that the flags name (none: an empty one) and overrides it.
absl::StatusOr<Question> ApplyOverrides(const ScenarioFlags& flags);

// ResolveScenario; chunks that nobody asked for are what the schedule needs.
absl::StatusOr<ResolvedScenario> ResolveWithChunks(const std::string& label,
                                                   Scenario scenario);

// The one scenario that the flags ask about, with its one schedule.
absl::StatusOr<ResolvedScenario> ResolveFlags(const ScenarioFlags& flags);

}  // namespace weir

#endif  // WEIR_CLI_OVERRIDES_H_
