// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "base/worker_pool.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/options/overrides.h"
#include "cli/weir/commands.h"
#include "plan/sensitivity/sensitivity.h"
#include "results/views/explanation.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

absl::StatusOr<Result> SimulateWithProgress(
    const scenarios::ResolvedScenario& scenario, const OutputFlags& output) {
  ProgressLine progress(output);
  sim::SimulateOptions options;
  options.progress = [&](double done) {
    progress.Show(scenario.scenario.schedule(), done);
  };
  return sim::Simulate(scenario, options);
}

absl::StatusOr<results::Explanation> Explain(const Flags& flags) {
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario scenario,
                   ResolveFlags(flags.scenario, &flags.output));
  RETURN_IF_ERROR(plan::CheckHasFigures(scenario));
  ASSIGN_OR_RETURN(Result result, SimulateWithProgress(scenario, flags.output));
  if (!flags.flops.empty()) result.set_flops_formula(flags.flops);
  ProgressLine progress(flags.output);
  plan::SensitivityOptions options;
  if (flags.num_jobs > 0) {
    options.num_processes = static_cast<int>(flags.num_jobs);
  }
  options.measured_seconds = flags.measured.step_seconds;
  options.progress = [&](int num_done, int num_figures) {
    progress.Show(absl::StrCat("[", num_done, "/", num_figures, "] parameters"),
                  1.0 * num_done / std::max(num_figures, 1));
  };
  NoteInterrupt();
  auto explanation = plan::ExplainResult(scenario, std::move(result), options);
  ExitOnInterrupt();
  return explanation;
}

}  // namespace

int RunExplain(const Flags& flags) {
  const absl::StatusOr<results::Explanation> explanation = Explain(flags);
  if (!explanation.ok()) return PrintError(explanation.status(), flags.output);
  const absl::Status printed =
      PrintResult(flags.output.format == OutputFlags::Format::kJson
                      ? results::ExplanationJson(flags.command, *explanation)
                      : results::ExplanationTable(*explanation));
  if (!printed.ok()) return PrintError(printed, flags.output);
  Results results;
  *results.add_results() = explanation->result;
  PrintWarnings(results, flags.output);
  return kExitOk;
}

}  // namespace weir::cli
