// SPDX-License-Identifier: Apache-2.0
#include "schedules/lint/lint.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "schedules/comm/transfers.h"
#include "schedules/interop/infer.h"
#include "schedules/lint/lint_rules.h"

namespace weir::schedules {
namespace {

enum class Rules { kFile, kAll };  // kAll: also those of runtimes

// Returns true if a stage has no action and therefore no rank.
bool HasGap(const Schedule& schedule) {
  return std::any_of(
      schedule.routes.begin(), schedule.routes.end(), [](const auto& route) {
        return std::find(route.begin(), route.end(), -1) != route.end();
      });
}

LintReport RunRules(const Schedule& schedule, const ScheduleRows* rows,
                    const LintOptions& options, Rules rules,
                    const std::vector<Inferred::Problem>& misfits) {
  Lint lint = {schedule, rows, options};
  lint.report.name = schedule.name;
  lint.report.num_ranks = schedule.num_ranks;
  lint.report.num_stages = schedule.num_stages;
  lint.report.num_microbatches = schedule.total_microbatches();
  lint.has_transfers = rows != nullptr && rows->has_transfers();
  for (const Inferred::Problem& misfit : misfits) {
    lint.Add({.rule = "placement",
              .place = lint.InFile(misfit.place),
              .message = misfit.message});
  }
  // A stage without actions has no rank, and rules that use the routes need
  // one.
  const bool runs = !HasGap(schedule) && LintPasses(&lint, misfits.empty());
  if (lint.has_transfers) LintOwnProgram(&lint, runs);
  if (runs && rules == Rules::kAll) LintRuntimes(&lint);
  std::stable_sort(lint.report.findings.begin(), lint.report.findings.end(),
                   [](const Finding& a, const Finding& b) {
                     return a.severity < b.severity;
                   });
  return std::move(lint.report);
}

// Rejects transfers, UNSHARD, RESHARD and REDUCE_GRAD of stages or microbatches
// without passes, because tables are sized by the passes.
absl::Status CheckNumbers(const ScheduleRows& rows, const Schedule& passes) {
  std::vector<std::string> lines;
  size_t num_wrong = 0;
  for (int32_t rank = 0; rank < std::ssize(rows.program.ranks); ++rank) {
    const std::vector<CommAction>& row = rows.program.ranks[rank];
    for (int32_t i = 0; i < std::ssize(row); ++i) {
      const bool stage = row[i].stage >= passes.num_stages;
      if (!stage && row[i].last_microbatch() < passes.num_microbatches) {
        continue;
      }
      if (++num_wrong > kMaxPerRule) continue;
      lines.push_back(absl::StrCat(
          rows.NameOf({rank, i}), ": ", ToString(row[i]), " is of ",
          stage ? "stage " : "microbatch ",
          stage ? row[i].stage : row[i].last_microbatch(),
          ", which has no pass, expected 0 to ",
          (stage ? passes.num_stages : passes.num_microbatches) - 1));
    }
  }
  if (lines.empty()) return absl::OkStatus();
  if (num_wrong > lines.size()) {
    lines.push_back(
        absl::StrCat(rows.label, ": and ", num_wrong - lines.size(), " more"));
  }
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

absl::StatusOr<LintReport> LintRows(const ScheduleRows& rows,
                                    const LintOptions& options, Rules rules) {
  ASSIGN_OR_RETURN(const Inferred inferred, InferSchedule(rows));
  RETURN_IF_ERROR(CheckNumbers(rows, inferred.schedule));
  return RunRules(inferred.schedule, &rows, options, rules, inferred.problems);
}

bool IsOfForm(absl::string_view rule) {
  return rule == "shape" || rule == "placement" || rule == "order" ||
         rule == "completeness" || rule == "size";
}

bool KeepsFromRunning(const Finding& finding, const ScheduleRows& rows) {
  if (finding.severity != Finding::Severity::kError) return false;
  if (finding.rule == "memory") return false;
  // A replicated stage can run unless the file has transfers, which would be
  // ambiguous. ScheduleFromRows rejects all other placement problems.
  return finding.rule != "placement" || rows.has_transfers();
}

// Returns "a.csv:1:5: 0B0 has no RECV_B [transfer]".
std::string LineOf(absl::string_view file, const Finding& finding) {
  std::string line(file);
  if (finding.line > 0) {
    absl::StrAppend(&line, ":", finding.line, ":", finding.column);
  }
  absl::StrAppend(&line, ": ", finding.message,
                  finding.cycle.empty() ? "" : ": ",
                  absl::StrJoin(finding.cycle, "; "));
  if (!finding.reordering.empty()) {
    absl::StrAppend(&line, "; fix: ", finding.reordering);
  }
  return absl::StrCat(line, " [", finding.rule, "]");
}

}  // namespace

void Lint::Add(Finding finding) {
  if (rows != nullptr && finding.place.exists()) {
    const auto& places = rows->places[finding.place.rank];
    if (finding.place.position < std::ssize(places)) {
      finding.line = finding.place.rank + 1;
      finding.column = places[finding.place.position].column;
    }
  }
  report.findings.push_back(std::move(finding));
}

void Lint::AddAll(std::vector<Finding> findings) {
  for (size_t i = 0; i < findings.size() && i < kMaxPerRule; ++i) {
    Add(std::move(findings[i]));
  }
}

Place Lint::InFile(Place pass) const {
  if (!has_transfers || !pass.exists()) return pass;
  return rows->InFile(pass);
}

Finding DeadlockFinding(absl::string_view rule, const CommProgram& program,
                        const std::vector<Wait>& cycle, absl::string_view how) {
  Finding finding;
  finding.rule = std::string(rule);
  finding.message =
      absl::StrCat("deadlock ", how, ", ", cycle.size(),
                   cycle.size() == 1 ? " rank waits" : " ranks wait");
  finding.cycle = absl::StrSplit(CycleText(program, cycle), "; ");
  return finding;
}

void AddAdvice(absl::string_view advice, Finding* finding) {
  absl::StrAppend(&finding->advice, finding->advice.empty() ? "" : "; ",
                  advice);
}

void AddReordering(Reordering reordering, Finding* finding) {
  const auto moves = [](int count) {
    return absl::StrCat(count, count == 1 ? " move" : " moves");
  };
  if (reordering.moves.empty()) {
    const int all = reordering.num_moves - (reordering.was_cut ? 1 : 0);
    std::string text = "no reordering ";
    if (all > 0) absl::StrAppend(&text, "of up to ", moves(all), " ");
    text += "resolves it";
    if (reordering.was_cut) {
      absl::StrAppend(&text, "; there are too many of ",
                      moves(reordering.num_moves), " to try all");
    }
    AddAdvice(text, finding);
  }
  finding->moves = std::move(reordering.moves);
  finding->reordering = std::move(reordering.text);
}

void AddHeadOfLine(Lint* lint, const CommProgram& program,
                   const RunOutcome& stream, double free_end) {
  if (stream.held <= 0 || stream.end <= free_end) return;
  const auto name = [&](Place place) {
    return absl::StrCat(ToString(program.ranks[place.rank][place.position]));
  };
  const bool own = lint->has_transfers;
  Finding finding = {
      .severity = Finding::Severity::kNote,
      .rule = "head-of-line",
      .message = absl::StrCat(
          own ? "" : "in PyTorch's lowering, ", name(stream.held_send),
          " of rank ", stream.held_send.rank, " is ready, but waits for ",
          stream.held, " units of time (F, I, W: 1 each) behind ",
          name(stream.held_by),
          " on the rank's communication stream: the schedule takes ",
          stream.end, " instead of ", free_end),
      .advice =
          "post every receive directly before the pass that needs it, or use "
          "one communicator per direction"};
  if (own) finding.place = stream.held_send;
  lint->Add(std::move(finding));
}

int LintReport::num_errors() const {
  return static_cast<int>(std::count_if(
      findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.severity == Finding::Severity::kError;
      }));
}

int LintReport::num_notes() const {
  return static_cast<int>(findings.size()) - num_errors();
}

LintReport LintSchedule(const Schedule& schedule, const LintOptions& options) {
  return RunRules(schedule, nullptr, options, Rules::kAll, {});
}

absl::StatusOr<LintReport> LintRows(const ScheduleRows& rows,
                                    const LintOptions& options) {
  return LintRows(rows, options, Rules::kAll);
}

absl::Status CheckRows(const ScheduleRows& rows) {
  ASSIGN_OR_RETURN(const LintReport report, LintRows(rows, {}, Rules::kFile));
  std::vector<std::string> lines;
  bool is_well_formed = true;
  for (const Finding& finding : report.findings) {
    if (!KeepsFromRunning(finding, rows)) continue;
    lines.push_back(LineOf(report.name, finding));
    is_well_formed &= !IsOfForm(finding.rule);
  }
  if (lines.empty()) return absl::OkStatus();
  return absl::Status(is_well_formed ? absl::StatusCode::kFailedPrecondition
                                     : absl::StatusCode::kInvalidArgument,
                      absl::StrJoin(lines, "\n"));
}

}  // namespace weir::schedules
