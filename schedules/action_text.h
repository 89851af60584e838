// SPDX-License-Identifier: Apache-2.0
// Shared by the parsers of actions.
#ifndef WEIR_SCHEDULES_ACTION_TEXT_H_
#define WEIR_SCHEDULES_ACTION_TEXT_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace weir::schedules {

// Consumes the digits at the front of `text`. Returns std::nullopt if there are
// none, or if the index is too large for any schedule.
std::optional<int32_t> ConsumeIndex(absl::string_view* text);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_ACTION_TEXT_H_
