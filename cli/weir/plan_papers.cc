// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/plan_papers.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/json_text.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "cli/options/imports.h"
#include "cli/options/messages.h"
#include "cli/options/overrides.h"
#include "cli/weir/document_report.h"
#include "cli/weir/envelope.h"
#include "cli/weir/plan_files.h"
#include "models/import/pipedream_graph.h"
#include "plan/papers/pipedream.h"
#include "plan/papers/planner_request.h"
#include "plan/papers/planner_views.h"
#include "plan/papers/registry.h"
#include "plan/papers/run_planner.h"

namespace weir::cli {
namespace {

using Format = OutputFlags::Format;
using Json = nlohmann::ordered_json;

constexpr absl::string_view kAll = "all";

absl::Status CheckGraphFlags(const Flags& flags) {
  const PlanFlags& plan = flags.plan;
  const bool has_scenario = !flags.scenario.scenario.empty();
  Problems problems("weir plan");
  plan::RefuseSearchOptions(plan.request, plan.synchronous, plan.explain,
                            &problems);
  if (flags.output.format == Format::kCsv) {
    problems.Add("--format", "is csv, expected table or json with --graph");
  }
  if (!flags.output.out.empty()) {
    problems.Add("--out", "is given with --graph, which makes no scenarios");
  }
  if (has_scenario) {
    problems.Add("--graph",
                 "is given with a scenario, expected only one of them");
  }
  plan::CheckGraphRequest(plan.algorithm, plan.pipedream, &problems);
  return problems.ToStatus();
}

absl::StatusOr<std::string> ViewGraph(const Flags& flags) {
  const PlanFlags& plan = flags.plan;
  RETURN_IF_ERROR(CheckGraphFlags(flags));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(plan.graph));
  ASSIGN_OR_RETURN(const models::ProfileGraph graph,
                   models::ParseProfileGraph(plan.graph, text));
  ASSIGN_OR_RETURN(const plan::AntichainDag dag,
                   plan::AntichainDagOf(plan.graph, graph));
  plan::PipeDreamOptions options = plan.pipedream;
  plan::SetGraphMemoryLimit(plan.request.memory_limit_bytes(), &options);
  absl::StatusOr<plan::PipeDreamPlan> planned;
  {
    ProgressLine progress(flags.output);
    options.progress = [&](double done) {
      progress.Show(plan::kGraphPlanner, done);
    };
    options.stop = Interrupted;
    NoteInterrupt();
    planned = plan::OptimizePipeDream(plan.graph, dag, options);
    ExitOnInterrupt();
  }
  RETURN_IF_ERROR(planned.status());
  const plan::PipeDreamPlan& found = *planned;
  const std::vector<std::string> warnings =
      plan::GraphPlanWarnings(dag, options, found);
  for (const std::string& warning : warnings) {
    PrintWarning(warning, flags.output);
  }
  if (flags.output.format == Format::kTable)
    return plan::PipeDreamTable(dag, found);
  Json config = {{"algorithm", plan.algorithm},
                 {"graph", plan.graph},
                 {"machines", options.num_machines},
                 {"bandwidth", options.bytes_per_second},
                 {"straight", options.straight},
                 {"fewer_machines", options.fewer_machines},
                 {"paper_formula", options.paper_formula}};
  if (options.activation_compression_ratio.has_value()) {
    config["activation_compression_ratio"] =
        *options.activation_compression_ratio;
  }
  if (options.memory_limit_bytes.has_value()) {
    config["memory_limit_bytes"] = *options.memory_limit_bytes;
    config["use_memory_constraint"] = options.published_memory;
  }
  return Envelope(flags.command, DumpJson(config),
                  plan::PipeDreamJson(dag, found), warnings);
}

absl::Status CheckScenarioFlags(const PlanFlags& plan) {
  Problems problems("weir plan");
  plan::RefuseGraphOptions(plan.pipedream, &problems);
  plan::RefuseSearchOptions(plan.request, plan.synchronous, plan.explain,
                            &problems);
  return problems.ToStatus();
}

absl::StatusOr<std::vector<plan::PlannerResult>> RunWithProgress(
    const Flags& flags, const std::vector<const plan::PaperPlanner*>& planners,
    const scenarios::ResolvedScenario& given) {
  ProgressLine line(flags.output);
  plan::RunPlannerOptions options;
  if (flags.num_jobs > 0) {
    options.num_processes = static_cast<int>(flags.num_jobs);
  }
  options.progress = [&](int num_done) {
    line.Show(
        planners.size() == 1
            ? std::string(planners[0]->name)
            : absl::StrCat("[", num_done, "/", planners.size(), "] planners"));
  };
  NoteInterrupt();
  auto answers = plan::RunPlanners(planners, given, options);
  ExitOnInterrupt();
  return answers;
}

absl::StatusOr<std::vector<plan::PlannerResult>> PlannerResultsOf(
    const Flags& flags) {
  RETURN_IF_ERROR(CheckScenarioFlags(flags.plan));
  std::vector<const plan::PaperPlanner*> planners = plan::AllPaperPlanners();
  if (flags.plan.algorithm != kAll) {
    ASSIGN_OR_RETURN(const plan::PaperPlanner* planner,
                     plan::FindPaperPlanner(flags.plan.algorithm));
    planners = {planner};
  }
  ASSIGN_OR_RETURN(const ScenarioRequest base, ApplyOverrides(flags.scenario));
  PrintImports(base, flags.output);
  for (const std::string& note : base.notes) PrintWarning(note, flags.output);
  const PlanRequest& request = flags.plan.request;
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario given,
                   plan::GivenByRequest(base.label, base.scenario, request));
  ASSIGN_OR_RETURN(std::vector<plan::PlannerResult> answers,
                   RunWithProgress(flags, planners, given));
  if (answers.empty()) {
    return absl::CancelledError("interrupted before any planner finished");
  }
  if (planners.size() > 1) return answers;
  const absl::Status& planned = answers[0].planned;
  if (absl::IsNotFound(planned)) {
    const ElapsedLine line(flags.output,
                           "searching for a sufficient memory size");
    return plan::NothingFits(*planners[0], base.label, base.scenario, request,
                             planned);
  }
  RETURN_IF_ERROR(planned);
  return answers;
}

absl::StatusOr<std::string> PlannerResultsText(const Flags& flags) {
  ASSIGN_OR_RETURN(const std::vector<plan::PlannerResult> answers,
                   PlannerResultsOf(flags));
  RETURN_IF_ERROR(WritePlanFiles(flags.output, plan::PlansOf(answers)));
  const auto json = [&] {
    return Envelope(flags.command,
                    DumpJson(Json{{"algorithm", flags.plan.algorithm}}),
                    plan::PlannerResultsJson(answers));
  };
  RETURN_IF_ERROR(WriteDocumentReport(flags.output, json));
  switch (flags.output.format) {
    case Format::kCsv:
      return plan::PlannerResultsCsv(answers);
    case Format::kJson:
      return json();
    default:
      return plan::PlannerResultsTable(answers);
  }
}

}  // namespace

int RunPaperPlanners(const Flags& flags) {
  if (!flags.plan.graph.empty() && !flags.output.report.empty()) {
    return PrintError(
        absl::InvalidArgumentError(
            "command line: --report cannot be combined with --graph, whose "
            "plan has no layout to show"),
        flags.output);
  }
  const absl::StatusOr<std::string> view =
      flags.plan.graph.empty() ? PlannerResultsText(flags) : ViewGraph(flags);
  if (!view.ok()) {
    const ExitCode code = PrintError(view.status(), flags.output);
    return absl::IsFailedPrecondition(view.status()) ? kExitNegative : code;
  }
  const absl::Status printed = PrintResult(*view);
  if (!printed.ok()) return PrintError(printed, flags.output);
  if (!Interrupted()) return kExitOk;
  PrintNote(flags.plan.graph.empty()
                ? "interrupted; showing the planners that have finished"
                : "interrupted",
            flags.output);
  return InterruptExitCode();
}

}  // namespace weir::cli
