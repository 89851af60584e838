// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "base/worker_pool.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/options/overrides.h"
#include "cli/weir/commands.h"
#include "cli/weir/document_report.h"
#include "cli/weir/explain_run.h"
#include "plan/sensitivity/sensitivity.h"
#include "results/flops.h"
#include "results/views/explanation.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

absl::StatusOr<Result> SimulateWithProgress(
    const scenarios::ResolvedScenario& scenario, const OutputFlags& output) {
  ProgressLine progress(output);
  sim::SimulateOptions options;
  options.keep_timeline = !output.report.empty();
  options.progress = [&](double done) {
    progress.Show(scenario.scenario.schedule(), done);
  };
  return sim::Simulate(scenario, options);
}

// Returns the measured seconds of a step; 0: not measured.
absl::StatusOr<double> MeasuredSeconds(const Flags& flags,
                                       const Result& result) {
  const double rate = flags.measured.flops_per_second;
  if (rate == 0) return flags.measured.step_seconds;
  const results::FlopsFormula formula = results::FormulaOf(result);
  const std::optional<double> predicted = results::FlopsPerGpu(result, formula);
  if (!predicted.has_value()) {
    return absl::InvalidArgumentError(
        "command line: --measured is a rate, expected seconds: the FLOP of "
        "the model are not known");
  }
  const double seconds = result.batch_seconds() * *predicted / rate;
  PrintNote(absl::StrCat("--measured: ", FormatFlops(rate), "/s per GPU by ",
                         "--flops ", results::NameOf(formula), " mean ",
                         FormatSeconds(seconds), " per step"),
            flags.output);
  return seconds;
}

absl::StatusOr<results::Explanation> Explain(const Flags& flags) {
  RETURN_IF_ERROR(CheckDocumentReport(flags.output));
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario scenario,
                   ResolveFlags(flags.scenario, &flags.output));
  RETURN_IF_ERROR(plan::CheckHasFigures(scenario));
  ASSIGN_OR_RETURN(Result result, SimulateWithProgress(scenario, flags.output));
  if (!flags.flops.empty()) result.set_flops_formula(flags.flops);
  ASSIGN_OR_RETURN(const double measured_seconds,
                   MeasuredSeconds(flags, result));
  return ExplainRun(scenario, std::move(result), measured_seconds, flags);
}

}  // namespace

absl::StatusOr<results::Explanation> ExplainRun(
    const scenarios::ResolvedScenario& scenario, Result result,
    double measured_seconds, const Flags& flags) {
  ProgressLine progress(flags.output);
  plan::SensitivityOptions options;
  if (flags.num_jobs > 0) {
    options.num_processes = static_cast<int>(flags.num_jobs);
  }
  options.measured_seconds = measured_seconds;
  options.progress = [&](int num_done, int num_figures) {
    progress.Show(absl::StrCat("[", num_done, "/", num_figures, "] parameters"),
                  1.0 * num_done / std::max(num_figures, 1));
  };
  NoteInterrupt();
  auto explanation = plan::ExplainResult(scenario, std::move(result), options);
  ExitOnInterrupt();
  return explanation;
}

int RunExplain(const Flags& flags) {
  const absl::StatusOr<results::Explanation> explanation = Explain(flags);
  if (!explanation.ok()) return PrintError(explanation.status(), flags.output);
  const absl::Status printed = PrintResult(
      flags.output.format == OutputFlags::Format::kJson
          ? results::ExplanationJson(flags.command, *explanation)
          : results::ExplanationTable(*explanation,
                                      flags.measured.all || flags.output.wide));
  if (!printed.ok()) return PrintError(printed, flags.output);
  const absl::Status reported = WriteDocumentReport(
      flags.output,
      [&] { return results::ExplanationJson(flags.command, *explanation); },
      {&explanation->result, 1});
  if (!reported.ok()) return PrintError(reported, flags.output);
  Results results;
  *results.add_results() = explanation->result;
  PrintWarnings(results, flags.output);
  return kExitOk;
}

}  // namespace weir::cli
