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

namespace weir::cli {

// Checks, before the simulation, the power model and that the format has room
// for energies.
absl::Status CheckEnergy(const Flags& flags);

// Returns the view with the energies of the results, or the view itself without
// --energy.
absl::StatusOr<std::string> WithEnergy(const Flags& flags, std::string view,
                                       std::span<const Result> results);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_ENERGY_VIEW_H_
