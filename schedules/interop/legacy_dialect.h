// SPDX-License-Identifier: Apache-2.0
// Detects and converts PyTorch's schedule files of 2024, in which B was the
// input gradient (today I) and BW the whole backward (today B). They are
// recognized by a BW, or by a W that follows a B of the same stage and
// microbatch without an I.
#ifndef WEIR_SCHEDULES_INTEROP_LEGACY_DIALECT_H_
#define WEIR_SCHEDULES_INTEROP_LEGACY_DIALECT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schedules/interop/schedule_text.h"

namespace weir::schedules {

// The cell that identifies a legacy file; column 0 if none was found.
struct LegacySign {
  int32_t rank = 0;
  int32_t column = 0;
  std::string text;
};

struct LegacyPlace {
  int32_t rank;
  int32_t position;
};

// Returns "2B0" for "2BW0", and "" for every other text.
std::string WholeBackwardOfLegacy(absl::string_view text);

// Returns InvalidArgument that names the dialect, or says that the file mixes
// both dialects.
absl::Status LegacyError(const ScheduleRows& rows, const LegacySign& sign);

// Returns LegacyError if a W identifies a legacy file.
absl::Status CheckNotLegacy(const ScheduleRows& rows);

// Renames every B that was not a BW to I. Returns InvalidArgument if the file
// also uses today's dialect.
absl::Status ConvertLegacy(ScheduleRows* rows,
                           const std::vector<LegacyPlace>& whole_backwards);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_INTEROP_LEGACY_DIALECT_H_
