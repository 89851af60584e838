// SPDX-License-Identifier: Apache-2.0
// Findings about the transfers in a file.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedules/comm/reorder.h"
#include "schedules/comm/transfers.h"
#include "schedules/interop/lower.h"
#include "schedules/lint/lint_program.h"
#include "schedules/lint/lint_rules.h"

namespace weir::schedules {
namespace {

// Returns true if the program can be run despite the faults.
bool AreLinked(const std::vector<TransferFault>& faults) {
  using Kind = TransferFault::Kind;
  return std::all_of(
      faults.begin(), faults.end(), [](const TransferFault& fault) {
        return fault.kind == Kind::kCrossed || fault.kind == Kind::kLate;
      });
}

// Reports receives that are pending during a pass that does not need them.
void AddEarlyReceives(Lint* lint, const CommProgram& program,
                      const Links& links) {
  std::vector<int32_t> taker(links.partner.size(), -1);
  int num_early = 0;
  Place first, before;
  for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const std::vector<CommAction>& row = program.ranks[rank];
    int32_t next_pass = -1;
    for (int32_t i = static_cast<int32_t>(row.size()); i-- > 0;) {
      const int32_t id = links.first[rank] + i;
      if (IsScheduled(row[i].op)) {
        next_pass = i;
        if (links.partner[id] >= 0) taker[links.partner[id]] = id;
      } else if (IsTransfer(row[i].op) && !IsSend(row[i].op) &&
                 next_pass >= 0 && taker[id] >= 0 &&
                 taker[id] > links.first[rank] + next_pass &&
                 !row[next_pass].with_next) {
        ++num_early;
        if (first.exists() && first.rank != static_cast<int32_t>(rank)) {
          continue;
        }
        first = {static_cast<int32_t>(rank), i};
        before = {static_cast<int32_t>(rank), next_pass};
      }
    }
  }
  if (num_early == 0) return;
  const auto name = [&](Place place) {
    return ToString(program.ranks[place.rank][place.position]);
  };
  lint->Add(
      {.severity = Finding::Severity::kNote,
       .rule = "early-receive",
       .place = first,
       .message = absl::StrCat(num_early,
                               " receives are posted before a pass that does "
                               "not need them, such as ",
                               name(first), " before ", name(before)),
       .advice = "a pass that communicates itself (all-to-all of MoE) waits "
                 "for the pending receive: post every receive directly before "
                 "the pass that uses it"});
}

void AddIdleCells(Lint* lint) {
  const std::vector<int32_t>& columns = lint->rows->first_idle_column;
  for (size_t rank = 0; rank < columns.size(); ++rank) {
    if (columns[rank] < 0) continue;
    Finding finding = {
        .rule = "idle",
        .message =
            absl::StrCat("rank ", rank, " has an idle cell between transfers"),
        .advice =
            "PyTorch accepts no idle cells in a file with transfers: remove "
            "it"};
    finding.line = static_cast<int>(rank) + 1;
    finding.column = columns[rank];
    lint->Add(std::move(finding));
  }
}

// Returns true if PyTorch's lowering of the same passes runs, which it does
// unless PyTorch cannot read them.
bool LoweringRuns(const Schedule& schedule) {
  if (!CheckPyTorchReads(schedule).ok()) return false;
  const absl::StatusOr<CommProgram> program =
      LowerSchedule(schedule, kTransfersOnly);
  if (!program.ok()) return false;
  std::vector<TransferFault> faults;
  const Links links = LinkProgram(*program, 1, &faults);
  return faults.empty() &&
         RunProgram(*program, links, TransferRule::kOneStream).cycle.empty();
}

void AddDeadlock(Lint* lint, TransferRule rule, const std::vector<Wait>& cycle,
                 Finding finding) {
  const auto find_cycle =
      [rule](const CommProgram& changed) -> std::optional<std::vector<Wait>> {
    std::vector<TransferFault> faults;
    const Links links = LinkProgram(changed, kMaxPerRule, &faults);
    if (!AreLinked(faults)) return std::nullopt;
    std::vector<Wait> left = RunProgram(changed, links, rule).cycle;
    if (left.empty() && !faults.empty()) return std::nullopt;
    return left;
  };
  finding.place = cycle[0].at;
  AddReordering(FindReordering(lint->rows->program, cycle, find_cycle),
                &finding);
  if (finding.moves.empty() && LoweringRuns(lint->schedule)) {
    AddAdvice("`weir schedule convert --lower` generates an order that runs",
              &finding);
  }
  lint->Add(std::move(finding));
}

// Checks the program in file order with sends and receives that block the rank.
void CheckBlocking(Lint* lint, const CommProgram& program, const Links& links) {
  const RunOutcome found = RunProgram(program, links, TransferRule::kBlocking);
  if (found.cycle.empty()) return;
  Finding finding =
      DeadlockFinding("rendezvous", program, found.cycle,
                      "with blocking sends and receives in program order");
  finding.advice =
      "a runtime must post receives early or batch them with sends, as "
      "Megatron-LM does";
  AddDeadlock(lint, TransferRule::kBlocking, found.cycle, std::move(finding));
}

}  // namespace

void LintOwnProgram(Lint* lint, bool sound) {
  const CommProgram& program = lint->rows->program;
  AddIdleCells(lint);
  std::vector<TransferFault> faults;
  const Links links = LinkProgram(program, kMaxPerRule, &faults);
  lint->AddAll(FromFaults(faults));
  lint->AddAll(FindStageFaults(program));
  if (!AreLinked(faults) || !sound) return;
  const RunOutcome dry = RunProgram(program, links, TransferRule::kBuffered);
  if (!dry.cycle.empty()) {
    AddDeadlock(
        lint, TransferRule::kBuffered, dry.cycle,
        DeadlockFinding("deadlock", program, dry.cycle,
                        "even with buffered sends (PyTorch's dry run)"));
    return;
  }
  if (!faults.empty()) return;  // crossed or late transfers, already reported
  if (lint->options.rendezvous) CheckBlocking(lint, program, links);
  const RunOutcome stream =
      RunProgram(program, links, TransferRule::kOneStream, true);
  if (stream.cycle.empty()) {
    AddHeadOfLine(lint, program, stream, lint->dry_end);
    AddEarlyReceives(lint, program, links);
    return;
  }
  Finding finding =
      DeadlockFinding("one-stream", program, stream.cycle,
                      "with one communication stream per rank, where a send "
                      "ends only after its receive has started");
  finding.advice =
      "PyTorch's dry run accepts it, but NCCL hangs: post the transfers of all "
      "ranks in a common order";
  AddDeadlock(lint, TransferRule::kOneStream, stream.cycle, std::move(finding));
}

}  // namespace weir::schedules
