// SPDX-License-Identifier: Apache-2.0
// What a schedule does to the weights, for people and for programs.
#ifndef WEIR_SCHEDULES_SEMANTICS_VIEW_H_
#define WEIR_SCHEDULES_SEMANTICS_VIEW_H_

#include <string>

#include "schedules/semantics.h"

namespace weir {

// The verdict, the update rule, a row for each stage, and what every microbatch
// reads where that fits the screen.
std::string SemanticsTable(const Schedule& schedule,
                           const Semantics& semantics);

// The same as a JSON object, with every microbatch.
std::string SemanticsJson(const Schedule& schedule, const Semantics& semantics);

}  // namespace weir

#endif  // WEIR_SCHEDULES_SEMANTICS_VIEW_H_
