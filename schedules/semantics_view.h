// SPDX-License-Identifier: Apache-2.0
// Prints the effect of a schedule on the weights as text and as JSON.
#ifndef WEIR_SCHEDULES_SEMANTICS_VIEW_H_
#define WEIR_SCHEDULES_SEMANTICS_VIEW_H_

#include <string>

#include "schedules/semantics.h"

namespace weir::schedules {

// Returns the verdict, the update rule, a row for each stage, and the versions
// that every microbatch reads if they fit on the screen.
std::string SemanticsTable(const Schedule& schedule,
                           const Semantics& semantics);

// Returns the same as a JSON object, with every microbatch.
std::string SemanticsJson(const Schedule& schedule, const Semantics& semantics);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_SEMANTICS_VIEW_H_
