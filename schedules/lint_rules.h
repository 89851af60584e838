// SPDX-License-Identifier: Apache-2.0
// What the linter's rules share; each group of them is a function on a Lint.
#ifndef WEIR_SCHEDULES_LINT_RULES_H_
#define WEIR_SCHEDULES_LINT_RULES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "schedules/deadlock.h"
#include "schedules/lint.h"
#include "schedules/reorder.h"

namespace weir {

// A broken file breaks everywhere: past this many, more lines say less.
inline constexpr size_t kMaxPerRule = 20;

// A schedule while it is linted.
struct Lint {
  const Schedule& schedule;
  const ScheduleRows* rows;  // null: not of a file of rows
  LintOptions options;
  LintReport report = {};
  bool has_transfers = false;  // of its own
  bool replicated = false;     // the only error: replicas of a stage
  double dry_end = 0;          // when the passes end with buffered sends

  // Adds the line and column of its place, which is one of the file.
  void Add(Finding finding);
  void AddAll(std::vector<Finding> findings);  // at most kMaxPerRule
  // The place in the file of a pass that is counted without transfers.
  Place InFile(Place pass) const;
};

// lint_passes.cc: the passes, whatever their transfers. Tells whether they run.
// `fits`: each stage's microbatches are where a schedule can have them.
bool LintPasses(Lint* lint, bool fits);
// lint_own_program.cc: the transfers that the file orders. `sound`: its passes
// run. REQUIRES: lint->has_transfers.
void LintOwnProgram(Lint* lint, bool sound);
// lint_runtimes.cc: runtimes that order the transfers themselves. REQUIRES: the
// passes run.
void LintRuntimes(Lint* lint);

// An error without a place: "deadlock <how>, 2 ranks wait".
Finding DeadlockFinding(absl::string_view rule, const CommProgram& program,
                        const std::vector<Wait>& cycle, absl::string_view how);
void AddAdvice(absl::string_view advice, Finding* finding);
// The moves that were found, or as advice that there are none.
void AddReordering(Reordering reordering, Finding* finding);
// Of the send that one stream holds back longest, where that makes the whole
// longer than `free_end`.
void AddHeadOfLine(Lint* lint, const CommProgram& program,
                   const Standstill& stream, double free_end);

}  // namespace weir

#endif  // WEIR_SCHEDULES_LINT_RULES_H_
