// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/worker_pool.h"
#include "cli/options/flag_terms.h"
#include "cli/options/imports.h"
#include "cli/options/messages.h"
#include "cli/options/overrides.h"
#include "cli/weir/commands.h"
#include "cli/weir/document_report.h"
#include "cli/weir/envelope.h"
#include "cli/weir/plan_files.h"
#include "cli/weir/plan_papers.h"
#include "plan/papers/planner_seeds.h"
#include "plan/search/joint_search.h"
#include "plan/search/plan_size.h"
#include "plan/search/plan_views.h"
#include "schedules/registry.h"

namespace weir::cli {
namespace {

// With --synchronous, keeps only the named schedules that have a flush.
absl::Status KeepSynchronous(PlanSpace* space) {
  auto* schedules = space->mutable_schedules();
  std::vector<std::string> kept;
  for (const std::string& name : *schedules) {
    ASSIGN_OR_RETURN(const schedules::ScheduleKind* kind,
                     schedules::FindScheduleKind(name));
    if (kind->flush) kept.push_back(name);
  }
  if (kept.empty() && !schedules->empty()) {
    return absl::InvalidArgumentError(
        "command line: --schedule: has no schedule with a flush, which "
        "--synchronous requires");
  }
  schedules->Assign(kept.begin(), kept.end());
  return absl::OkStatus();
}

absl::StatusOr<PlanReport> SearchLayouts(const Flags& flags) {
  ASSIGN_OR_RETURN(ScenarioRequest base, ApplyOverrides(flags.scenario));
  PrintImports(base, flags.output);
  constexpr double kLeastPlausibleBytes = 1 << 20;
  if (const double limit = flags.plan.request.memory_limit_bytes();
      limit > 0 && limit < kLeastPlausibleBytes) {
    PrintWarning(absl::StrCat("--memory-limit is ", limit,
                              " bytes, which is less than "
                              "1 MiB; ",
                              limit, "GiB has a unit"),
                 flags.output);
  }
  RETURN_IF_ERROR(CheckPlanFiles(flags.output, flags.plan.request.num_plans()));
  PlanRequest request = flags.plan.request;
  const uint32_t num_gpus = base.scenario.parallelism().num_gpus();
  if (request.space().gpus().empty() && num_gpus > 0) {
    request.mutable_space()->add_gpus(num_gpus);
  }
  *request.mutable_scenario() = std::move(base.scenario);
  request.set_flops_formula(flags.flops.empty() ? "model" : flags.flops);
  if (flags.plan.synchronous) {
    RETURN_IF_ERROR(KeepSynchronous(request.mutable_space()));
    request.mutable_space()->set_asynchronous(false);
  }
  plan::SearchOptions options;
  options.num_processes = flags.num_jobs > 0 ? static_cast<int>(flags.num_jobs)
                                             : DefaultProcesses();
  ProgressLine progress(flags.output);
  if (progress.enabled()) {
    options.progress = [&](const std::string& text) { progress.Show(text); };
  }
  NoteInterrupt();
  RETURN_IF_ERROR(
      plan::CheckSearchSize(base.label, request, options.num_processes));
  const double limit = flags.plan.time_limit_seconds;
  if (std::isfinite(limit)) {
    options.deadline = std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::nanoseconds>(
                           std::chrono::duration<double>(limit));
  }
  // With these seeds, no plan of a paper's planner is better than the result.
  options.find_seeds = [&](const std::string& best) {
    return plan::SeedsFor(base.label, request, options, [&](double done) {
      progress.Show(absl::StrCat(best, "running planners"), done);
    });
  };
  options.neighbors = true;
  absl::Status printed;
  if (flags.plan.stream) {
    options.improved = [&](const Plan& plan) {
      progress.Clear();
      printed.Update(PrintResult(
          absl::StrCat("{\"improved\":", plan::OnePlanJson(plan), "}\n")));
    };
  }
  absl::StatusOr<PlanReport> report =
      plan::SearchPlans(base.label, request, options);
  ExitOnInterrupt();
  RETURN_IF_ERROR(printed);
  if (report.ok()) {
    std::vector<std::string> warnings = base.notes;
    warnings.insert(warnings.end(), report->warnings().begin(),
                    report->warnings().end());
    DropImportedWarnings(base.imports, &warnings);
    report->mutable_warnings()->Assign(warnings.begin(), warnings.end());
  }
  return report;
}

std::string JsonOf(const Flags& flags, const PlanReport& report) {
  return Envelope(flags.command, plan::PlanRequestJson(report.request()),
                  plan::PlanJson(report),
                  {report.warnings().begin(), report.warnings().end()});
}

std::string OnOneLine(const std::string& json) {
  return absl::StrCat(DumpJson(nlohmann::ordered_json::parse(json)), "\n");
}

std::string View(const Flags& flags, const PlanReport& report) {
  switch (flags.output.format) {
    case OutputFlags::Format::kJson:
      return flags.plan.stream ? OnOneLine(JsonOf(flags, report))
                               : JsonOf(flags, report);
    case OutputFlags::Format::kCsv:
      return plan::PlanCsv(report);
    case OutputFlags::Format::kTable:
      break;
  }
  return plan::PlanTable(report, flags.plan.explain);
}

}  // namespace

int RunPlan(const Flags& flags) {
  const absl::Status writable = CheckDocumentReport(flags.output);
  if (!writable.ok()) return PrintError(writable, flags.output);
  if (flags.plan.stream && flags.output.format != OutputFlags::Format::kJson) {
    return PrintError(absl::InvalidArgumentError(
                          "command line: --stream is given without --format "
                          "json, which it needs"),
                      flags.output);
  }
  if (!flags.plan.algorithm.empty() || !flags.plan.graph.empty() ||
      !flags.plan.pipedream.num_machines.empty()) {
    if (!flags.flops.empty()) {
      return PrintError(
          absl::InvalidArgumentError(
              "command line: --flops cannot be combined with --algorithm, "
              "whose planners report no FLOP"),
          flags.output);
    }
    if (std::isfinite(flags.plan.time_limit_seconds)) {
      return PrintError(
          absl::InvalidArgumentError(
              "command line: --time-limit cannot be combined with "
              "--algorithm; Ctrl-C shows the planners that have finished"),
          flags.output);
    }
    return RunPaperPlanners(flags);
  }
  const absl::StatusOr<PlanReport> report = SearchLayouts(flags);
  if (!report.ok()) {
    const ExitCode code =
        PrintError(InFlagTerms(report.status(), flags.scenario), flags.output);
    // The request is valid, but the answer is negative.
    return absl::IsFailedPrecondition(report.status()) ? kExitNegative : code;
  }
  int code = kExitOk;
  if (Interrupted()) {
    code = InterruptExitCode();
    PrintNote("interrupted; showing the best plans so far", flags.output);
  }
  const absl::Status printed = PrintResult(View(flags, *report));
  if (!printed.ok()) code = PrintError(printed, flags.output);
  for (const std::string& warning : report->warnings()) {
    PrintWarning(warning, flags.output);
  }
  absl::Status written = WritePlanFiles(
      flags.output, {report->plans().begin(), report->plans().end()});
  written.Update(WriteDocumentReport(flags.output,
                                     [&] { return JsonOf(flags, *report); }));
  if (!written.ok()) code = PrintError(written, flags.output);
  return code;
}

}  // namespace weir::cli
