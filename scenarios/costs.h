// SPDX-License-Identifier: Apache-2.0
// Checks given costs; they are parsed in scenarios/scenario.h.
#ifndef WEIR_SCENARIOS_COSTS_H_
#define WEIR_SCENARIOS_COSTS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "scenarios/scenario.pb.h"
#include "schedules/pass_costs.h"

namespace weir::scenarios {

// Reports all problems of the costs. Prepends `prefix` to field names
// ("costs." or "").
void CheckCosts(Problems& problems, absl::string_view prefix,
                const GivenCosts& costs);

// Sets costs.hop_seconds to a time ("0.2ms"), or multiplies it ("0.5x"). Errors
// name `flag`.
absl::Status SetHop(absl::string_view flag, absl::string_view text,
                    GivenCosts* costs);

// Returns the costs in the form that generators use. If only whole backwards
// are given, I and W take half of them each.
schedules::PassCosts PassCostsOf(const GivenCosts& costs);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_COSTS_H_
