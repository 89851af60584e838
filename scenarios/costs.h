// SPDX-License-Identifier: Apache-2.0
// Checks of costs that are given by hand; parsing is in scenarios/scenario.h.
#ifndef WEIR_SCENARIOS_COSTS_H_
#define WEIR_SCENARIOS_COSTS_H_

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "scenarios/scenario.pb.h"
#include "schedules/pass_costs.h"

namespace weir {

// Notes everything wrong with the costs; `prefix` goes before field names
// ("textbook." or nothing).
void CheckCosts(Problems& problems, absl::string_view prefix,
                const TextbookCosts& costs);

// What a generator may know of them. Where only whole backwards are given I and
// W are half of one each.
PassCosts PassCostsOf(const TextbookCosts& costs);

}  // namespace weir

#endif  // WEIR_SCENARIOS_COSTS_H_
