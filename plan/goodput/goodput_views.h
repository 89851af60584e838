// SPDX-License-Identifier: Apache-2.0
// Views of a goodput report.
#ifndef WEIR_PLAN_GOODPUT_GOODPUT_VIEWS_H_
#define WEIR_PLAN_GOODPUT_GOODPUT_VIEWS_H_

#include <string>

#include "plan/goodput/goodput.h"

namespace weir::plan {

std::string GoodputTable(const GoodputReport& report);

// Return JSON objects: what was asked for, and the report. Times are in
// seconds, shares are fractions of the wall time.
std::string GoodputConfigJson(const GoodputReport& report);
std::string GoodputJson(const GoodputReport& report);

}  // namespace weir::plan

#endif  // WEIR_PLAN_GOODPUT_GOODPUT_VIEWS_H_
