// SPDX-License-Identifier: Apache-2.0
// --energy of "simulate" and "compare".
#ifndef WEIR_CLI_WEIR_ENERGY_VIEW_H_
#define WEIR_CLI_WEIR_ENERGY_VIEW_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/options/flags.h"
#include "results/result.pb.h"
#include "scenarios/scenario.h"

namespace weir::cli {

// Checks the power model and the flags that need each other before the
// simulation. CSV output cannot contain energies. `with_timeline`: the command
// keeps the timeline that measured passes need. Returns InvalidArgument with
// the flag, NotFound if there is no such model.
absl::Status CheckEnergy(const Flags& flags, bool with_timeline);

// Returns InvalidArgument for --tokens if a step of the scenario has no known
// number of tokens. Warns if the power model is of another device.
absl::Status CheckEnergyOf(const Flags& flags,
                           const scenarios::ResolvedScenario& scenario);

// Returns the view with the energies of the results, or the view itself without
// --energy. Returns the errors of EnergyOfPasses and EnergyOfStep.
absl::StatusOr<std::string> WithEnergy(const Flags& flags, std::string view,
                                       std::span<const Result> results);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_ENERGY_VIEW_H_
