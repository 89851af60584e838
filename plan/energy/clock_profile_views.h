// SPDX-License-Identifier: Apache-2.0
// A clock profile as "weir import" shows it.
#ifndef WEIR_PLAN_ENERGY_CLOCK_PROFILE_VIEWS_H_
#define WEIR_PLAN_ENERGY_CLOCK_PROFILE_VIEWS_H_

#include <string>

#include "plan/energy/clock_profile.h"

namespace weir::plan {

// Returns a row for each stage and pass: clocks, and seconds and joules at the
// highest and the lowest.
std::string ClockProfileTable(const ClockProfile& profile);
// Returns a JSON object with every measured point.
std::string ClockProfileJson(const ClockProfile& profile);

}  // namespace weir::plan

#endif  // WEIR_PLAN_ENERGY_CLOCK_PROFILE_VIEWS_H_
