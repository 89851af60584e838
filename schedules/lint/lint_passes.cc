// SPDX-License-Identifier: Apache-2.0
// Findings about the passes that do not depend on transfers.
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "schedules/comm/reorder.h"
#include "schedules/interop/pytorch_check.h"
#include "schedules/lint/lint_memory.h"
#include "schedules/lint/lint_rules.h"
#include "schedules/validate.h"

namespace weir::schedules {
namespace {

std::string AdviceFor(absl::string_view rule) {
  if (rule == "completeness") {
    return "every stage needs F and B, or F, I and W, of every microbatch";
  }
  if (rule == "size") {
    return "both stages must process the same microbatches together: there is "
           "one transfer between them, and different sizes hang";
  }
  return "";
}

void CheckPlacement(Lint* lint) {
  if (lint->schedule.num_routes() < 2) return;
  for (int stage = 0; stage < lint->schedule.num_stages; ++stage) {
    const std::vector<int> ranks = lint->schedule.RanksOf(stage);
    if (ranks.size() < 2) continue;
    const bool generated = lint->rows == nullptr;
    lint->Add(
        {.severity = generated && !lint->options.pytorch
                         ? Finding::Severity::kNote
                         : Finding::Severity::kError,
         .rule = "placement",
         .message = absl::StrCat("stage ", stage, " is on ranks ",
                                 absl::StrJoin(ranks, " and "),
                                 generated ? ", each with a copy of its "
                                             "weights"
                                           : ", expected one"),
         .advice = generated
                       ? "PyTorch's runtime supports a stage on one rank only"
                       : "if the weights are replicated on purpose, use a "
                         "schedule that does so (chimera, pipedream, ...)"});
    lint->replicated = true;
    return;
  }
}

void CheckPasses(Lint* lint) {
  for (const ScheduleProblem& problem :
       FindScheduleProblems(lint->schedule, kMaxPerRule)) {
    lint->Add({.rule = std::string(problem.rule),
               .place = lint->InFile(problem.place),
               .message = problem.message,
               .advice = AdviceFor(problem.rule)});
    lint->replicated = false;
  }
}

// Reports what PyTorch would reject first, in its words.
void CheckPyTorch(Lint* lint) {
  const Finding::Severity severity = lint->options.pytorch
                                         ? Finding::Severity::kError
                                         : Finding::Severity::kNote;
  if (lint->rows != nullptr) {
    const std::string verdict = PyTorchVerdict(*lint->rows);
    if (!verdict.empty()) {
      lint->Add({.severity = severity,
                 .rule = "pytorch",
                 .message = absl::StrCat("PyTorch rejects it: ", verdict)});
    }
  }
  if (!lint->has_transfers &&
      lint->schedule.num_stages == lint->schedule.num_ranks &&
      lint->schedule.flush &&
      lint->schedule.num_microbatches < lint->schedule.num_stages) {
    lint->Add({.severity = severity,
               .rule = "pytorch",
               .message = absl::StrCat(
                   "has ", lint->schedule.num_microbatches, " of ",
                   lint->schedule.num_stages,
                   " microbatches that PyTorch's schedules with one stage per "
                   "rank need, one per stage: they hang or reject it"),
               .advice = "use at least as many microbatches as stages, or run "
                         "it as a file (_PipelineScheduleRuntime)"});
  }
  const absl::Status reads = CheckPyTorchReads(lint->schedule);
  if (reads.ok()) return;
  for (absl::string_view line : absl::StrSplit(reads.message(), '\n')) {
    absl::ConsumePrefix(&line, absl::StrCat(lint->schedule.name, ": "));
    // Reported by CheckPlacement.
    if (absl::StrContains(line, "is replicated")) continue;
    lint->Add(
        {.severity = severity,
         .rule = "pytorch",
         .message = std::string(line),
         .advice = "weir can simulate it, but cannot export it for PyTorch"});
  }
}

void CheckMemory(Lint* lint) {
  for (Finding& finding : FindMemoryGrowth(lint->schedule)) {
    finding.place = lint->InFile(finding.place);
    lint->Add(std::move(finding));
  }
}

// Returns false if the passes deadlock.
bool CheckPassesRun(Lint* lint) {
  const RunOutcome free = RunSchedule(lint->schedule);
  lint->dry_end = free.end;
  if (free.cycle.empty()) return true;
  const auto find_cycle =
      [&](const CommProgram& changed) -> std::optional<std::vector<Wait>> {
    Schedule other = lint->schedule;
    other.rank_actions = PassesOf(changed);
    if (!FindScheduleProblems(other, 1).empty()) return std::nullopt;
    return RunSchedule(other).cycle;
  };
  const CommProgram passes = WithoutTransfers(lint->schedule);
  Finding finding = DeadlockFinding("deadlock", passes, free.cycle,
                                    "even with buffered sends");
  finding.place = lint->InFile(free.cycle[0].at);
  AddReordering(FindReordering(passes, free.cycle, find_cycle), &finding);
  lint->Add(std::move(finding));
  return false;
}

}  // namespace

bool LintPasses(Lint* lint, bool fits) {
  CheckPlacement(lint);
  CheckPasses(lint);
  CheckPyTorch(lint);
  if (!fits || (lint->report.num_errors() > 0 && !lint->replicated)) {
    return false;
  }
  CheckMemory(lint);
  return CheckPassesRun(lint);
}

}  // namespace weir::schedules
