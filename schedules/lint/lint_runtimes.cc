// SPDX-License-Identifier: Apache-2.0
// Findings about runtimes that derive the order of transfers from the passes.
// For a deadlock with blocking sends or Megatron-LM's batches no reordering is
// searched: their transfers follow from the passes and cannot be moved
// individually. Moving the passes of every microbatch instead would give a
// different schedule.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "schedules/comm/transfers.h"
#include "schedules/interop/lower.h"
#include "schedules/interop/megatron.h"
#include "schedules/lint/lint_rules.h"

namespace weir::schedules {
namespace {

Finding::Severity SeverityOf(bool asked_for) {
  return asked_for ? Finding::Severity::kError : Finding::Severity::kNote;
}

void CheckInProgramOrder(Lint* lint) {
  const CommProgram program = LowerInProgramOrder(lint->schedule);
  std::vector<TransferFault> faults;
  const Links links = LinkProgram(program, 1, &faults);
  const RunOutcome found = RunProgram(program, links, TransferRule::kBlocking);
  if (found.cycle.empty()) return;
  Finding finding =
      DeadlockFinding("rendezvous", program, found.cycle,
                      "with blocking sends and receives in program order");
  finding.severity = SeverityOf(lint->options.rendezvous);
  // Correct for most runtimes, which do not send in this way.
  if (finding.severity == Finding::Severity::kNote) {
    finding.message =
        absl::StrCat("needs receives that are posted early: ",
                     absl::StripPrefix(finding.message, "deadlock "));
  }
  finding.advice =
      "a runtime must post receives early or batch them with sends, as PyTorch "
      "and Megatron-LM do";
  lint->Add(std::move(finding));
}

void CheckLowered(Lint* lint) {
  const absl::StatusOr<CommProgram> program =
      LowerSchedule(lint->schedule, kTransfersOnly);
  if (!program.ok()) return;
  std::vector<TransferFault> faults;
  const Links links = LinkProgram(*program, 1, &faults);
  const RunOutcome found =
      RunProgram(*program, links, TransferRule::kOneStream, true);
  if (!faults.empty() || !found.cycle.empty()) {
    lint->Add(
        {.rule = "one-stream", .message = "PyTorch's lowering of it fails"});
    return;
  }
  AddHeadOfLine(lint, *program, found, lint->dry_end);
}

void CheckMegatron(Lint* lint) {
  const std::optional<CommProgram> program = MegatronProgram(lint->schedule);
  if (!program) {
    if (!lint->options.megatron) return;
    lint->Add({.rule = "megatron",
               .message =
                   "is not an order that Megatron-LM supports, expected on "
                   "every rank: forwards, pairs of a forward and a backward, "
                   "then backwards, with stages assigned to ranks cyclically"});
    return;
  }
  std::vector<TransferFault> faults;
  const Links links = LinkProgram(*program, 1, &faults);
  const Finding::Severity severity = SeverityOf(lint->options.megatron);
  if (!faults.empty()) {
    lint->Add({.severity = severity,
               .rule = "megatron",
               .message = absl::StrCat("in Megatron-LM's batched transfers ",
                                       faults[0].message),
               .advice = "two sends to the same rank in one batch are matched "
                         "only by their order: run with overlapped (unbatched) "
                         "transfers, or on more than two ranks"});
    return;
  }
  const RunOutcome found = RunProgram(*program, links, TransferRule::kBlocking);
  if (found.cycle.empty()) return;
  Finding finding =
      DeadlockFinding("megatron", *program, found.cycle,
                      "in Megatron-LM's batched sends and receives");
  finding.severity = severity;
  finding.advice =
      "its batches follow from the order of the passes: run with overlapped "
      "(unbatched) transfers";
  lint->Add(std::move(finding));
}

}  // namespace

void LintRuntimes(Lint* lint) {
  // A file's own transfers are posted in their order.
  const bool own = lint->has_transfers;
  if (!own) CheckInProgramOrder(lint);
  if (!own) CheckLowered(lint);
  if (!own || lint->options.megatron) CheckMegatron(lint);
}

}  // namespace weir::schedules
