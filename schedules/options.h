// SPDX-License-Identifier: Apache-2.0
// Parses a schedule's options, which follow its name: "zb-1p:memory-limit=6".
#ifndef WEIR_SCHEDULES_OPTIONS_H_
#define WEIR_SCHEDULES_OPTIONS_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "schedules/registry.h"

namespace weir::schedules {

// Returns "zb-1p" for "zb-1p:memory-limit=6".
absl::string_view WithoutOptions(absl::string_view name);

// Removes the number of stages per rank from a name with options,
// "interleaved-1f1b:v=4", and returns it; 0 if there is none. Returns
// InvalidArgument if it is not a number from 1.
absl::StatusOr<int> TakeChunks(std::string* name);

// Returns the kind's own name followed by the options of `name`, unchanged.
std::string WithOwnName(absl::string_view name, const ScheduleKind& kind);

// Returns the spec with the options of `name` added. Returns InvalidArgument
// with the option if it is unknown, malformed or repeated.
absl::StatusOr<ScheduleSpec> WithOptionsOf(absl::string_view name,
                                           const ScheduleKind& kind,
                                           ScheduleSpec spec);

// Return the value of an option, or `fallback` if it is not given. A malformed
// value or one out of range adds a problem.
int IntOption(const ScheduleSpec& spec, absl::string_view option, int fallback,
              int low, int high, Problems* problems);
double NumberOption(const ScheduleSpec& spec, absl::string_view option,
                    double fallback, double low, double high,
                    Problems* problems);
// Returns one of the choices; the first unless given.
std::string ChoiceOption(const ScheduleSpec& spec, absl::string_view option,
                         std::initializer_list<absl::string_view> choices,
                         Problems* problems);
// Returns integers joined by '-', as in "3-1"; empty unless given.
std::vector<int> IntsOption(const ScheduleSpec& spec, absl::string_view option,
                            int low, int high, Problems* problems);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_OPTIONS_H_
