// SPDX-License-Identifier: Apache-2.0
// Prints a lint report as text and as JSON.
#ifndef WEIR_SCHEDULES_LINT_LINT_TEXT_H_
#define WEIR_SCHEDULES_LINT_LINT_TEXT_H_

#include <string>

#include "schedules/lint/lint.h"

namespace weir::schedules {

// Returns the report as text:
//
//   bad.csv: 2 ranks, 2 stages, 2 microbatches: 1 error, 0 notes
//
//   error deadlock: bad.csv:1:5: rank 0 position 1: deadlock even with ...
//     rank 0 waits at position 1 (0B0) for 1B0 at position 2 of rank 1
//     ...
//     fix: move 1B0 of rank 1 from position 2 to 1, before 1F1
//     advice: ...
std::string LintText(const LintReport& report);

// Returns the report as JSON:
//
//   {"schedule": "bad.csv", "num_ranks": 2, ..., "errors": 1, "notes": 0,
//    "findings": [{"severity": "error", "rule": "deadlock", "rank": 0,
//    "position": 1, "line": 1, "column": 5, "message": ..., "advice": ...,
//    "cycle": [...], "reordering": ...}]}
//
// Absent fields are omitted. The text ends without a newline.
std::string LintJson(const LintReport& report);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_LINT_LINT_TEXT_H_
