// SPDX-License-Identifier: Apache-2.0
// What the parsers of actions share.
#ifndef WEIR_SCHEDULES_ACTION_TEXT_H_
#define WEIR_SCHEDULES_ACTION_TEXT_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace weir {

// Takes the digits at the front of `text`, nothing when there are none or they
// name an index that no schedule can have.
std::optional<int32_t> ConsumeIndex(absl::string_view* text);

}  // namespace weir

#endif  // WEIR_SCHEDULES_ACTION_TEXT_H_
