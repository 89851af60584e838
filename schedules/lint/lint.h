// SPDX-License-Identifier: Apache-2.0
// Finds everything that can be wrong with a schedule before it is run.
//
//   rule            finding                                       severity
//   shape, order, completeness, size
//                   rejected by ValidateSchedule                   error
//   placement       a stage on several ranks                       file: error
//   deadlock        the order deadlocks even with buffered sends   error
//   rendezvous      it deadlocks with blocking sends in program
//                   order                                          note
//   one-stream      it deadlocks on one communication stream per
//                   rank: with a file's own transfers, otherwise
//                   with PyTorch's lowering                        error
//   megatron        it deadlocks with Megatron-LM's batches        note
//   transfer        unmatched, crossed, late or useless transfers  error
//   gradient        reduced before its last contribution, twice    error
//   sharding        computes on weights that are not gathered      error
//   idle            an idle cell between transfers                 error
//   memory          activations grow with the microbatches         error
//   memory-all      as many activations as microbatches, at once   note
//   memory-deferred weight gradient inputs grow with the
//                   microbatches                                   note
//   head-of-line    a send that is ready waits behind a receive    note
//   early-receive   a file's receive before a pass without use     note
//   pytorch         rejected by PyTorch                            note
//
// A note becomes an error if LintOptions requires the runtime.
#ifndef WEIR_SCHEDULES_LINT_LINT_H_
#define WEIR_SCHEDULES_LINT_LINT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schedules/comm/deadlock.h"
#include "schedules/comm/reorder.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/schedule.h"

namespace weir::schedules {

struct Finding {
  enum class Severity { kError, kNote };
  Severity severity = Severity::kError;
  std::string rule = {};
  Place place = {};          // absent for the whole schedule
  int line = 0, column = 0;  // in a file; 0: none
  std::string message = {};
  std::string advice = {};              // empty: none
  std::vector<std::string> cycle = {};  // waits of a deadlock
  // The smallest reordering that ends the deadlock, if one was found: as text,
  // and as moves of the file's actions, or of passes in a cycle of passes.
  std::string reordering = {};
  std::vector<Move> moves = {};
};

struct LintOptions {
  // Runtimes that must be able to run the schedule, besides buffered sends.
  bool rendezvous = false;
  bool pytorch = false;
  bool megatron = false;
};

struct LintReport {
  std::string name;
  int num_ranks = 0, num_stages = 0, num_microbatches = 0;
  std::vector<Finding> findings;  // errors first

  int num_errors() const;
  int num_notes() const;
};

// Lints a schedule from a generator or from a file without line numbers.
LintReport LintSchedule(const Schedule& schedule, const LintOptions& options);

// Lints a file. Returns InvalidArgument if there are too few actions for the
// stages and microbatches that they contain.
absl::StatusOr<LintReport> LintRows(const ScheduleRows& rows,
                                    const LintOptions& options);

// Checks a file that is to be used in weir. Reports all errors that keep its
// passes, or its own transfers, from running, as "a.csv:1:5: <message>
// [<rule>]". Returns FailedPrecondition if the file is well-formed but cannot
// run, otherwise InvalidArgument. Ignores replicated stages and growing memory.
absl::Status CheckRows(const ScheduleRows& rows);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_LINT_LINT_H_
