// SPDX-License-Identifier: Apache-2.0
// PyTorch's schedule files of 2024: B was the input gradient (I today) and BW
// the whole backward (B today). Told by a BW, or by a W that follows a B of the
// same stage and microbatch without an I.
#ifndef WEIR_SCHEDULES_LEGACY_DIALECT_H_
#define WEIR_SCHEDULES_LEGACY_DIALECT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schedules/schedule_text.h"

namespace weir {

// The cell that gives a file away; column 0: none seen.
struct LegacySign {
  int32_t rank = 0;
  int32_t column = 0;
  std::string text;
};

struct LegacyPlace {
  int32_t rank;
  int32_t position;
};

// "2B0" of "2BW0", empty for every other text.
std::string WholeBackwardOfLegacy(absl::string_view text);

// InvalidArgument that names the dialect, or says that the file mixes both.
absl::Status LegacyError(const ScheduleRows& rows, const LegacySign& sign);

// LegacyError when a W tells of a legacy file.
absl::Status CheckNotLegacy(const ScheduleRows& rows);

// Renames B to I but for those that were BW. InvalidArgument for a file that is
// today's in part.
absl::Status ConvertLegacy(ScheduleRows* rows,
                           const std::vector<LegacyPlace>& whole_backwards);

}  // namespace weir

#endif  // WEIR_SCHEDULES_LEGACY_DIALECT_H_
