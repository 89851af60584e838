// SPDX-License-Identifier: Apache-2.0
// A schedule's options, written behind its name: "zb-1p:memory-limit=6".
#ifndef WEIR_SCHEDULES_OPTIONS_H_
#define WEIR_SCHEDULES_OPTIONS_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "schedules/registry.h"

namespace weir {

// "zb-1p" of "zb-1p:memory-limit=6".
absl::string_view WithoutOptions(absl::string_view name);

// The kind's own name with the options of `name` as they are written there.
std::string WithOwnName(absl::string_view name, const ScheduleKind& kind);

// The spec with the options of `name` added. InvalidArgument names an option
// that the kind does not have, that is malformed or comes twice.
absl::StatusOr<ScheduleSpec> WithOptionsOf(absl::string_view name,
                                           const ScheduleKind& kind,
                                           ScheduleSpec spec);

// The readers note a problem for a value that is not what they read, and then
// return the fallback.
int IntOption(const ScheduleSpec& spec, absl::string_view option, int fallback,
              int low, int high, Problems* problems);
double NumberOption(const ScheduleSpec& spec, absl::string_view option,
                    double fallback, double low, double high,
                    Problems* problems);
// One of the choices; the first unless given.
std::string ChoiceOption(const ScheduleSpec& spec, absl::string_view option,
                         std::initializer_list<absl::string_view> choices,
                         Problems* problems);
// Whole numbers joined by '-', as in "3-1"; empty unless given.
std::vector<int> IntsOption(const ScheduleSpec& spec, absl::string_view option,
                            int low, int high, Problems* problems);

}  // namespace weir

#endif  // WEIR_SCHEDULES_OPTIONS_H_
