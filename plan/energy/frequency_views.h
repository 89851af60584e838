// SPDX-License-Identifier: Apache-2.0
// Views of plans of clocks.
#ifndef WEIR_PLAN_ENERGY_FREQUENCY_VIEWS_H_
#define WEIR_PLAN_ENERGY_FREQUENCY_VIEWS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "plan/energy/frequency_plan.h"

namespace weir::plan {

std::string FrequencyTable(const FrequencyReport& report);

// Return JSON objects: what was asked for, and the report.
std::string FrequencyConfigJson(const FrequencyReport& report);
std::string FrequencyJson(const FrequencyReport& report);

// Returns the points, one row per deadline.
std::string FrequencyCsv(const FrequencyReport& report);

// Returns the clocks of one point, one row per pass in the order of each rank:
// rank, action, clock_mhz, seconds, joules.
std::string ClocksCsv(const FrequencyReport& report,
                      const FrequencyPoint& point);
// Returns true for the first line of ClocksCsv.
bool IsClocksHeader(absl::string_view line);

}  // namespace weir::plan

#endif  // WEIR_PLAN_ENERGY_FREQUENCY_VIEWS_H_
