// SPDX-License-Identifier: Apache-2.0
// Everything that can be wrong with a schedule, found before anybody waits for
// a job that hangs.
//
//   rule            what                                          severity
//   shape, order, completeness, size
//                   what ValidateSchedule refuses                  error
//   placement       a stage on several ranks                       file: error
//   deadlock        the order cannot run with buffered sends       error
//   rendezvous      nor with blocking sends in program order       note
//   one-stream      nor on one communication stream per rank: a
//                   file's own transfers, else PyTorch's lowering  error
//   megatron        nor with Megatron-LM's batches                 note
//   transfer        unmatched, crossed, late or useless transfers  error
//   gradient        reduced before its last contribution, twice    error
//   sharding        computes on weights that are not gathered      error
//   idle            an idle cell between transfers                 error
//   memory          activations grow with the microbatches         error
//   memory-all      as many activations as microbatches, at once   note
//   head-of-line    a send that is ready waits behind a receive    note
//   early-receive   a file's receive before a pass without need   note
//   pytorch         what PyTorch refuses                           note
//
// A note becomes an error for a runtime that was asked for.
#ifndef WEIR_SCHEDULES_LINT_H_
#define WEIR_SCHEDULES_LINT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schedules/deadlock.h"
#include "schedules/reorder.h"
#include "schedules/schedule.h"
#include "schedules/schedule_text.h"

namespace weir {

struct Finding {
  enum class Severity { kError, kNote };
  Severity severity = Severity::kError;
  std::string rule = {};
  Place place = {};          // of the action; absent for the whole schedule
  int line = 0, column = 0;  // of a file; 0: none
  std::string message = {};
  std::string advice = {};              // empty: none
  std::vector<std::string> cycle = {};  // of a deadlock, wait by wait
  // The smallest reordering that ends it, if one was found: in words, and as
  // moves of the file's actions, or of passes that wait for passes.
  std::string reordering = {};
  std::vector<Move> moves = {};
};

struct LintOptions {
  // Runtimes that must be able to run it, beside buffered sends.
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

// Of a schedule that a generator made, or that was read without its places.
LintReport LintSchedule(const Schedule& schedule, const LintOptions& options);

// Of a file. InvalidArgument when its actions cannot fill the stages and
// microbatches that they name.
absl::StatusOr<LintReport> LintRows(const ScheduleRows& rows,
                                    const LintOptions& options);

// Of a file that is to be used in weir: every error that keeps its passes, or
// the transfers that it orders itself, from running, as
// "a.csv:1:5: <what> [<rule>]", all together. InvalidArgument, or
// FailedPrecondition when it is well-formed and cannot run. Copies of a stage
// and activations that grow are no such error.
absl::Status CheckRows(const ScheduleRows& rows);

}  // namespace weir

#endif  // WEIR_SCHEDULES_LINT_H_
