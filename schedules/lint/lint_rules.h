// SPDX-License-Identifier: Apache-2.0
// Shared by the linter's rules. Each group of rules is a function of a Lint.
#ifndef WEIR_SCHEDULES_LINT_LINT_RULES_H_
#define WEIR_SCHEDULES_LINT_LINT_RULES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "schedules/comm/deadlock.h"
#include "schedules/comm/reorder.h"
#include "schedules/lint/lint.h"

namespace weir::schedules {

// Maximum number of findings per rule. A broken file may have a problem
// everywhere.
inline constexpr size_t kMaxPerRule = 20;

// State of the linter for one schedule.
struct Lint {
  const Schedule& schedule;
  const ScheduleRows* rows;  // null: not from a file of rows
  LintOptions options;
  LintReport report = {};
  bool has_transfers = false;  // of the file itself
  bool replicated = false;     // the only error is a replicated stage
  double dry_end = 0;          // end of the passes with buffered sends

  // Sets the line and column from the finding's place in the file.
  void Add(Finding finding);
  void AddAll(std::vector<Finding> findings);  // at most kMaxPerRule
  // Returns the place in the file of a pass that is counted without transfers.
  Place InFile(Place pass) const;
};

// Lints the passes without regard to transfers. Returns true if they run.
// `fits`: InferSchedule reported no problem. In lint_passes.cc.
bool LintPasses(Lint* lint, bool fits);
// Lints the file's own transfers. `sound`: its passes run. In
// lint_own_program.cc. Requires: lint->has_transfers.
void LintOwnProgram(Lint* lint, bool sound);
// Lints runtimes that order the transfers themselves. In lint_runtimes.cc.
// Requires: the passes run.
void LintRuntimes(Lint* lint);

// Returns an error without a place: "deadlock <how>, 2 ranks wait".
Finding DeadlockFinding(absl::string_view rule, const CommProgram& program,
                        const std::vector<Wait>& cycle, absl::string_view how);
void AddAdvice(absl::string_view advice, Finding* finding);
// Adds the moves found or, if there are none, advice that says so.
void AddReordering(Reordering reordering, Finding* finding);
// Adds a finding about the send that a stream delays longest, if the whole then
// takes longer than `free_end`.
void AddHeadOfLine(Lint* lint, const CommProgram& program,
                   const RunOutcome& stream, double free_end);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_LINT_LINT_RULES_H_
