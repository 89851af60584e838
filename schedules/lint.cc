// SPDX-License-Identifier: Apache-2.0
#include "schedules/lint.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "schedules/infer.h"
#include "schedules/lint_memory.h"
#include "schedules/lint_program.h"
#include "schedules/lower.h"
#include "schedules/megatron.h"
#include "schedules/pytorch_check.h"
#include "schedules/reorder.h"
#include "schedules/transfers.h"
#include "schedules/validate.h"

namespace weir {
namespace {

using Severity = Finding::Severity;

// A broken file breaks everywhere: past this many, more lines say less.
constexpr size_t kMaxPerRule = 20;

std::string AdviceFor(absl::string_view rule) {
  if (rule == "completeness") {
    return "every stage needs F and B, or F, I and W, of every microbatch";
  }
  if (rule == "size") {
    return "both stages must take the same microbatches in one piece: there is "
           "one transfer between them, and sizes that differ hang";
  }
  return "";
}

class Linter {
 public:
  Linter(const Schedule& schedule, const ScheduleRows* rows,
         const LintOptions& options)
      : schedule_(schedule), rows_(rows), options_(options) {
    report_.name = schedule.name;
    report_.num_ranks = schedule.num_ranks;
    report_.num_stages = schedule.num_stages;
    report_.num_microbatches = schedule.total_microbatches();
    has_transfers_ = rows != nullptr && rows->has_transfers();
  }

  LintReport Run(const std::vector<std::string>& misfits) && {
    for (const std::string& misfit : misfits) {
      absl::string_view text = misfit;
      absl::ConsumePrefix(&text, absl::StrCat(schedule_.name, ": "));
      Add({.rule = "placement", .message = std::string(text)});
    }
    CheckPlacement();
    CheckPasses();
    CheckPyTorch();
    bool runs = misfits.empty() && (report_.num_errors() == 0 || replicated_);
    if (runs) {
      CheckMemory();
      runs = CheckPassesRun();
    }
    if (has_transfers_) CheckOwnProgram(runs);
    if (runs) CheckRuntimes();
    std::stable_sort(report_.findings.begin(), report_.findings.end(),
                     [](const Finding& a, const Finding& b) {
                       return a.severity < b.severity;
                     });
    return std::move(report_);
  }

 private:
  void Add(Finding finding) {
    if (rows_ != nullptr && finding.place.exists()) {
      const auto& places = rows_->places[finding.place.rank];
      if (finding.place.position < std::ssize(places)) {
        finding.line = finding.place.rank + 1;
        finding.column = places[finding.place.position].column;
      }
    }
    report_.findings.push_back(std::move(finding));
  }

  void AddAll(std::vector<Finding> findings) {
    for (size_t i = 0; i < findings.size() && i < kMaxPerRule; ++i) {
      Add(std::move(findings[i]));
    }
  }

  // Passes are numbered without the transfers between them.
  Place InFile(Place pass) const {
    if (!has_transfers_ || !pass.exists()) return pass;
    const std::vector<CommAction>& row = rows_->program.ranks[pass.rank];
    int32_t left = pass.position;
    for (int32_t i = 0; i < std::ssize(row); ++i) {
      if (IsPass(row[i].op) && left-- == 0) return {pass.rank, i};
    }
    return {};
  }

  void CheckPlacement() {
    if (schedule_.num_routes() < 2) return;
    for (int stage = 0; stage < schedule_.num_stages; ++stage) {
      const std::vector<int> ranks = schedule_.RanksOf(stage);
      if (ranks.size() < 2) continue;
      const bool generated = rows_ == nullptr;
      Add({.severity = generated && !options_.pytorch ? Severity::kNote
                                                      : Severity::kError,
           .rule = "placement",
           .message = absl::StrCat("stage ", stage, " is on ranks ",
                                   absl::StrJoin(ranks, " and "),
                                   generated ? ", each with a copy of its "
                                               "weights"
                                             : ", expected one"),
           .advice =
               generated
                   ? "PyTorch's runtime takes a stage on one rank only"
                   : "if the weights are meant to be replicated, name the "
                     "schedule that does it (chimera, pipedream, ...)"});
      replicated_ = true;
      return;
    }
  }

  void CheckPasses() {
    for (const ScheduleProblem& problem :
         FindScheduleProblems(schedule_, kMaxPerRule)) {
      Add({.rule = std::string(problem.rule),
           .place = InFile(problem.place),
           .message = problem.message,
           .advice = AdviceFor(problem.rule)});
      replicated_ = false;
    }
  }

  // What PyTorch would say first, in its words.
  void CheckPyTorch() {
    const Severity severity =
        options_.pytorch ? Severity::kError : Severity::kNote;
    if (rows_ != nullptr) {
      const std::string verdict = PyTorchVerdict(*rows_);
      if (!verdict.empty()) {
        Add({.severity = severity,
             .rule = "pytorch",
             .message = absl::StrCat("PyTorch refuses it: ", verdict)});
      }
    }
    if (!has_transfers_ && schedule_.num_stages == schedule_.num_ranks &&
        schedule_.flush && schedule_.num_microbatches < schedule_.num_stages) {
      Add({.severity = severity,
           .rule = "pytorch",
           .message = absl::StrCat(
               "has ", schedule_.num_microbatches, " of ", schedule_.num_stages,
               " microbatches that PyTorch's schedules of one stage per rank "
               "need, as many as stages: they hang or refuse it"),
           .advice = "use as many microbatches as stages, or run it as a file "
                     "(_PipelineScheduleRuntime)"});
    }
    const absl::Status reads = CheckPyTorchReads(schedule_);
    if (reads.ok()) return;
    for (absl::string_view line : absl::StrSplit(reads.message(), '\n')) {
      absl::ConsumePrefix(&line, absl::StrCat(schedule_.name, ": "));
      // Said above.
      if (absl::StrContains(line, "is replicated")) continue;
      Add({.severity = severity,
           .rule = "pytorch",
           .message = std::string(line),
           .advice = "weir runs it; export for PyTorch is refused"});
    }
  }

  void AddDeadlock(absl::string_view rule, Severity severity,
                   const CommProgram& program, const Standstill& standstill,
                   absl::string_view how, std::string advice,
                   const std::function<bool(const CommProgram&)>& runs,
                   bool in_passes) {
    Finding finding;
    finding.severity = severity;
    finding.rule = std::string(rule);
    const Place at = standstill.cycle[0].at;
    finding.place = in_passes ? InFile(at) : at;
    const size_t waits = standstill.cycle.size();
    finding.message = absl::StrCat("deadlock ", how, ", ", waits,
                                   waits == 1 ? " rank waits" : " ranks wait");
    finding.cycle = absl::StrSplit(CycleText(program, standstill.cycle), "; ");
    finding.advice = std::move(advice);
    if (runs) {
      const std::optional<Reordering> found =
          FindReordering(program, standstill.cycle, runs);
      if (found) finding.reordering = found->text;
    }
    Add(std::move(finding));
  }

  // The transfers that the file orders itself.
  void CheckOwnProgram(bool sound) {
    const CommProgram& program = rows_->program;
    for (size_t rank = 0; rank < rows_->first_idle_column.size(); ++rank) {
      if (rows_->first_idle_column[rank] < 0) continue;
      Finding finding = {
          .rule = "idle",
          .message = absl::StrCat("rank ", rank,
                                  " has an idle cell between transfers"),
          .advice = "PyTorch takes none in a file with transfers: drop it"};
      finding.line = static_cast<int>(rank) + 1;
      finding.column = rows_->first_idle_column[rank];
      report_.findings.push_back(std::move(finding));
    }
    std::vector<TransferFault> faults;
    const Links links = LinkProgram(program, kMaxPerRule, &faults);
    AddAll(FromFaults(faults));
    AddAll(FindStageFaults(program));
    using Kind = TransferFault::Kind;
    const bool linked = std::all_of(
        faults.begin(), faults.end(), [](const TransferFault& fault) {
          return fault.kind == Kind::kCrossed || fault.kind == Kind::kLate;
        });
    if (!linked || !sound) return;
    const auto runs_by = [](TransferRule rule) {
      return [rule](const CommProgram& changed) {
        std::vector<TransferFault> none;
        const Links again = LinkProgram(changed, 1, &none);
        return none.empty() && RunProgram(changed, again, rule).cycle.empty();
      };
    };
    const Standstill dry = RunProgram(program, links, TransferRule::kBuffered);
    if (!dry.cycle.empty()) {
      AddDeadlock("deadlock", Severity::kError, program, dry,
                  "with buffered sends too (PyTorch's dry run)", "",
                  runs_by(TransferRule::kBuffered), false);
      return;
    }
    if (!faults.empty()) return;  // crossed or late: said, and the reason
    const Standstill stream =
        RunProgram(program, links, TransferRule::kOneStream, true);
    if (!stream.cycle.empty()) {
      AddDeadlock("one-stream", Severity::kError, program, stream,
                  "on one communication stream per rank, where a send ends "
                  "only when its receive has begun",
                  "PyTorch's dry run passes it, NCCL hangs: post the "
                  "transfers of all ranks in one common order",
                  runs_by(TransferRule::kOneStream), false);
      return;
    }
    AddHeadOfLine(program, stream, dry_end_);
    AddEarlyReceives(program, links);
  }

  void AddHeadOfLine(const CommProgram& program, const Standstill& stream,
                     double free_end) {
    if (stream.held <= 0 || stream.end <= free_end) return;
    const auto name = [&](Place place) {
      return absl::StrCat(ToString(program.ranks[place.rank][place.position]));
    };
    const bool own = has_transfers_;
    Finding finding = {
        .severity = Severity::kNote,
        .rule = "head-of-line",
        .message = absl::StrCat(
            own ? "" : "in PyTorch's lowering, ", name(stream.held_send),
            " of rank ", stream.held_send.rank, " is ready and waits ",
            stream.held, " (F, I, W take 1) behind ", name(stream.held_by),
            " on the rank's communication stream: the whole takes ", stream.end,
            " instead of ", free_end),
        .advice =
            "post a receive right before the pass that needs it, or give "
            "each direction its own communicator"};
    if (own) finding.place = stream.held_send;
    Add(std::move(finding));
  }

  // Receives that are pending while a pass runs that does not need them.
  void AddEarlyReceives(const CommProgram& program, const Links& links) {
    std::vector<int32_t> taker(links.partner.size(), -1);
    int num_early = 0;
    Place first, before;
    for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
      const std::vector<CommAction>& row = program.ranks[rank];
      int32_t next_pass = -1;
      for (int32_t i = static_cast<int32_t>(row.size()); i-- > 0;) {
        const int32_t id = links.first[rank] + i;
        if (IsPass(row[i].op)) {
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
    Add({.severity = Severity::kNote,
         .rule = "early-receive",
         .place = first,
         .message = absl::StrCat(num_early,
                                 " receives are posted before a pass that does "
                                 "not need them, such as ",
                                 name(first), " before ", name(before)),
         .advice = "where a pass communicates itself (MoE's all-to-all), it "
                   "waits for the pending receive: post it right before the "
                   "pass that takes it"});
  }

  bool CheckPassesRun() {
    const Standstill free = RunSchedule(schedule_);
    dry_end_ = free.end;
    if (free.cycle.empty()) return true;
    AddDeadlock(
        "deadlock", Severity::kError, WithoutTransfers(schedule_), free,
        "even with buffered sends", "",
        [this](const CommProgram& changed) {
          Schedule other = schedule_;
          other.rank_actions = PassesOf(changed);
          return FindScheduleProblems(other, 1).empty() &&
                 RunSchedule(other).cycle.empty();
        },
        true);
    return false;
  }

  void CheckRuntimes() {
    // Transfers that the file orders are posted in that order.
    if (!has_transfers_ || options_.rendezvous) CheckInProgramOrder();
    if (!has_transfers_) CheckLowered();
    if (!has_transfers_ || options_.megatron) CheckMegatron();
  }

  Severity SeverityOf(bool asked_for) const {
    return asked_for ? Severity::kError : Severity::kNote;
  }

  void CheckInProgramOrder() {
    const CommProgram program = LowerInProgramOrder(schedule_);
    std::vector<TransferFault> faults;
    const Links links = LinkProgram(program, 1, &faults);
    const Standstill found =
        RunProgram(program, links, TransferRule::kBlocking);
    if (found.cycle.empty()) return;
    AddDeadlock("rendezvous", SeverityOf(options_.rendezvous), program, found,
                "with blocking sends and receives in program order",
                "a runtime must post receives ahead or pair them with sends, "
                "as PyTorch's lowering and Megatron-LM's batches do",
                nullptr, false);
    report_.findings.back().place = {};
    report_.findings.back().line = report_.findings.back().column = 0;
  }

  void CheckLowered() {
    const absl::StatusOr<CommProgram> program =
        LowerSchedule(schedule_, kTransfersOnly);
    if (!program.ok()) return;
    std::vector<TransferFault> faults;
    const Links links = LinkProgram(*program, 1, &faults);
    const Standstill found =
        RunProgram(*program, links, TransferRule::kOneStream, true);
    if (!faults.empty() || !found.cycle.empty()) {
      Add({.rule = "one-stream",
           .message = "PyTorch's lowering of it does not run"});
      return;
    }
    AddHeadOfLine(*program, found, dry_end_);
  }

  void CheckMegatron() {
    const std::optional<CommProgram> program = MegatronProgram(schedule_);
    if (!program) {
      if (!options_.megatron) return;
      Add({.rule = "megatron",
           .message = "is no order of Megatron-LM's: expected forwards, pairs "
                      "of a forward and a backward, then backwards, on every "
                      "rank, of stages placed in a loop"});
      return;
    }
    std::vector<TransferFault> faults;
    const Links links = LinkProgram(*program, 1, &faults);
    const Severity severity = SeverityOf(options_.megatron);
    if (!faults.empty()) {
      Add({.severity = severity,
           .rule = "megatron",
           .message =
               absl::StrCat("in Megatron-LM's batches ", faults[0].message),
           .advice = "two sends to one rank in one batch are told apart by "
                     "their order only: run with overlapped (unbatched) "
                     "transfers, or on more than two ranks"});
      return;
    }
    const Standstill found =
        RunProgram(*program, links, TransferRule::kBlocking);
    if (found.cycle.empty()) return;
    AddDeadlock("megatron", severity, *program, found,
                "in Megatron-LM's batched sends and receives", "", nullptr,
                false);
    report_.findings.back().place = {};
    report_.findings.back().line = report_.findings.back().column = 0;
  }

  void CheckMemory() {
    for (Finding& finding : FindMemoryGrowth(schedule_)) {
      finding.place = InFile(finding.place);
      Add(std::move(finding));
    }
  }

  const Schedule& schedule_;
  const ScheduleRows* const rows_;
  const LintOptions options_;
  bool has_transfers_ = false;
  bool replicated_ = false;  // the only error: replicas of a stage
  double dry_end_ = 0;
  LintReport report_;
};

}  // namespace

int LintReport::num_errors() const {
  return static_cast<int>(std::count_if(
      findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.severity == Severity::kError;
      }));
}

int LintReport::num_notes() const {
  return static_cast<int>(findings.size()) - num_errors();
}

LintReport LintSchedule(const Schedule& schedule, const LintOptions& options) {
  return Linter(schedule, nullptr, options).Run({});
}

absl::StatusOr<LintReport> LintRows(const ScheduleRows& rows,
                                    const LintOptions& options) {
  ASSIGN_OR_RETURN(const Inferred inferred,
                   InferSchedule(rows.label, PassesOf(rows.program)));
  const ProgramShape shape = ShapeOf(rows.program);
  if (shape.num_stages > inferred.schedule.num_stages ||
      shape.num_microbatches > inferred.schedule.num_microbatches) {
    return absl::InvalidArgumentError(
        absl::StrCat(rows.label, ": transfers and stages' actions name ",
                     shape.num_stages, " stages and ", shape.num_microbatches,
                     " microbatches, expected those of the passes, ",
                     inferred.schedule.num_stages, " and ",
                     inferred.schedule.num_microbatches));
  }
  return Linter(inferred.schedule, &rows, options).Run(inferred.problems);
}

absl::Status CheckTransfers(const ScheduleRows& rows) {
  if (!rows.has_transfers()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const LintReport report, LintRows(rows, {}));
  std::vector<std::string> lines;
  for (const Finding& finding : report.findings) {
    if (finding.severity != Severity::kError) continue;
    std::string where = report.name;
    if (finding.line > 0) {
      absl::StrAppend(&where, ":", finding.line, ":", finding.column);
    }
    lines.push_back(absl::StrCat(where, ": ", finding.message,
                                 finding.cycle.empty() ? "" : ": ",
                                 absl::StrJoin(finding.cycle, "; ")));
  }
  if (lines.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrJoin(lines, "\n"));
}

}  // namespace weir
