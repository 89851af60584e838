// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/plan_papers.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/json_text.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "cli/options/messages.h"
#include "cli/options/option_group.h"
#include "cli/options/overrides.h"
#include "cli/weir/envelope.h"
#include "cli/weir/plan_files.h"
#include "models/import/pipedream_graph.h"
#include "plan/papers/pipedream.h"
#include "plan/papers/planner_views.h"
#include "plan/papers/registry.h"
#include "plan/papers/run_planner.h"

namespace weir::cli {
namespace {

using Format = OutputFlags::Format;
using Json = nlohmann::ordered_json;

constexpr absl::string_view kPipeDream = "pipedream";
constexpr absl::string_view kAll = "all";
constexpr double kPublishedMemoryBytes = 16e9;  // default of the published code

std::string Names() {
  std::string names;
  for (const plan::PaperPlanner& planner : plan::PaperPlanners()) {
    absl::StrAppend(&names, planner.name, ", ");
  }
  return absl::StrCat(names, kAll);
}

absl::StatusOr<std::vector<double>> ParseRates(const std::string& text) {
  std::vector<double> rates;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(rates.emplace_back(), ParsePositive(part));
  }
  return rates;
}

plan::PipeDreamOptions OptionsOf(const PlanFlags& plan) {
  plan::PipeDreamOptions options;
  options.num_machines.assign(plan.machines.begin(), plan.machines.end());
  options.bytes_per_second = plan.bandwidth;
  options.straight = plan.straight;
  options.fewer_machines = plan.fewer_machines;
  options.paper_formula = plan.paper_formula;
  options.activation_compression_ratio = plan.activation_compression_ratio;
  options.published_memory = plan.published_memory;
  if (plan.request.memory_limit_bytes() > 0) {
    options.memory_limit_bytes = plan.request.memory_limit_bytes();
  } else if (plan.published_memory) {
    options.memory_limit_bytes = kPublishedMemoryBytes;
  }
  return options;
}

// Refuses flags that planners decide themselves, or do not know.
void RefuseOfSearch(const PlanFlags& plan, Problems* problems) {
  const PlanSpace& space = plan.request.space();
  const auto search_only = [&](absl::string_view flag, bool is_given) {
    if (is_given) {
      problems->Add(flag, "is given with --algorithm, which decides by itself");
    }
  };
  search_only("--pp", !space.pipeline().empty());
  search_only("--dp", !space.data().empty());
  search_only("--ep", !space.expert().empty());
  search_only("--chunks", !space.chunks().empty());
  search_only("--schedule", !space.schedules().empty() || space.any_runtime());
  search_only("--order", !space.orders().empty());
  search_only("--sharding", !space.sharding().empty());
  search_only("--even-layers", space.even_layers_only());
  search_only("--asynchronous", space.asynchronous());
  search_only("--memory-margin", plan.request.has_memory_margin());
  search_only("--synchronous", plan.synchronous);
  search_only("--objective", plan.request.objective() != 0);
  search_only("--price-per-gpu-hour", plan.request.price_per_gpu_hour() > 0);
  search_only("--plans", plan.request.num_plans() > 0);
  search_only("--explain", plan.explain);
}

absl::Status CheckGraphFlags(const Flags& flags) {
  const PlanFlags& plan = flags.plan;
  const bool has_scenario = !flags.scenario.scenario.empty();
  Problems problems("weir plan");
  RefuseOfSearch(plan, &problems);
  if (flags.output.format == Format::kCsv) {
    problems.Add("--format", "is csv, expected table or json with --graph");
  }
  if (!flags.output.out.empty()) {
    problems.Add("--out", "is given with --graph, which has no scenario");
  }
  if (has_scenario) {
    problems.Add("--graph", "is given with a scenario, expected one of them");
  }
  if (plan.algorithm != kPipeDream) {
    problems.Add(
        "--algorithm",
        absl::StrCat("is ", plan.algorithm.empty() ? "missing" : plan.algorithm,
                     ", expected ", kPipeDream, " with --graph"));
  }
  if (plan.machines.empty()) {
    problems.Add("--machines",
                 "is missing, expected one number for each "
                 "level, as in 4,4");
  }
  if (plan.bandwidth.empty()) {
    problems.Add("--bandwidth",
                 "is missing, expected bytes per second for "
                 "each level, as in 1e9,2e8");
  }
  return problems.ToStatus();
}

// Returns limitations of a plan that a user should know. The published code has
// the same limitations without a warning.
std::vector<std::string> WarningsOf(const plan::AntichainDag& dag,
                                    const plan::PipeDreamOptions& options,
                                    const plan::PipeDreamPlan& found) {
  std::vector<std::string> warnings;
  if (found.num_cut_states < found.num_states) {
    warnings.push_back(absl::StrCat(
        "interrupted: the best plan so far has cuts at ", found.num_cut_states,
        " of ", found.num_states, " antichains only"));
  }
  if (const size_t num_nodes = dag.unreached_nodes.size(); num_nodes > 0) {
    warnings.push_back(absl::StrCat(
        "in no stage, as no edges join them to the first source: ",
        dag.node_names[dag.unreached_nodes[0]],
        num_nodes > 1 ? absl::StrCat(" and ", num_nodes - 1, " more") : ""));
  }
  for (size_t s = 0; s < found.stages.size(); ++s) {
    const double bytes = plan::BytesOfMinibatch(dag, found.stages[s]);
    if (bytes <= options.memory_limit_bytes.value_or(bytes)) continue;
    warnings.push_back(absl::StrCat(
        "stage ", s, " needs ", FormatBytes(bytes),
        " for one minibatch, more "
        "than --memory-limit, which --use-memory-constraint does not count "
        "where no machine is behind it"));
  }
  return warnings;
}

absl::StatusOr<std::string> ViewGraph(const Flags& flags) {
  const PlanFlags& plan = flags.plan;
  RETURN_IF_ERROR(CheckGraphFlags(flags));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(plan.graph));
  ASSIGN_OR_RETURN(const models::ProfileGraph graph,
                   models::ParseProfileGraph(plan.graph, text));
  ASSIGN_OR_RETURN(const plan::AntichainDag dag,
                   plan::AntichainDagOf(plan.graph, graph));
  plan::PipeDreamOptions options = OptionsOf(plan);
  absl::StatusOr<plan::PipeDreamPlan> planned;
  {
    ProgressLine progress(flags.output);
    options.progress = [&](double done) { progress.Show(kPipeDream, done); };
    options.stop = Interrupted;
    NoteInterrupt();
    planned = plan::OptimizePipeDream(plan.graph, dag, options);
    ExitOnInterrupt();
  }
  RETURN_IF_ERROR(planned.status());
  const plan::PipeDreamPlan& found = *planned;
  const std::vector<std::string> warnings = WarningsOf(dag, options, found);
  for (const std::string& warning : warnings) {
    PrintWarning(warning, flags.output);
  }
  if (flags.output.format == Format::kTable)
    return plan::PipeDreamTable(dag, found);
  Json config = {{"algorithm", plan.algorithm},
                 {"graph", plan.graph},
                 {"machines", plan.machines},
                 {"bandwidth", plan.bandwidth},
                 {"straight", plan.straight},
                 {"fewer_machines", plan.fewer_machines},
                 {"paper_formula", plan.paper_formula}};
  if (plan.activation_compression_ratio.has_value()) {
    config["activation_compression_ratio"] = *plan.activation_compression_ratio;
  }
  if (options.memory_limit_bytes.has_value()) {
    config["memory_limit_bytes"] = *options.memory_limit_bytes;
    config["use_memory_constraint"] = options.published_memory;
  }
  return Envelope(flags.command, DumpJson(config),
                  plan::PipeDreamJson(dag, found), warnings);
}

// Returns the value of a flag: planners take one value, the search a list.
template <typename Values>
uint32_t OneOf(absl::string_view flag, const Values& values,
               Problems* problems) {
  if (values.size() > 1) {
    problems->Add(flag, absl::StrCat("has ", values.size(),
                                     " values, expected one with --algorithm"));
  }
  return values.empty() ? 0 : values[0];
}

absl::StatusOr<scenarios::ResolvedScenario> Given(const Flags& flags,
                                                  double memory_limit_bytes) {
  ASSIGN_OR_RETURN(ScenarioRequest request, ApplyOverrides(flags.scenario));
  const PlanSpace& space = flags.plan.request.space();
  Problems problems(request.label);
  Scenario& scenario = request.scenario;
  if (const uint32_t tensor = OneOf("--tp", space.tensor(), &problems)) {
    scenario.mutable_parallelism()->set_tensor(tensor);
  }
  if (const uint32_t size =
          OneOf("--mbs", space.microbatch_size(), &problems)) {
    scenario.mutable_batch()->set_microbatch_size(size);
  }
  if (const uint32_t mode =
          OneOf("--recompute", space.recompute(), &problems)) {
    scenario.mutable_training()->set_recompute(
        static_cast<RecomputeMode>(mode));
  }
  const int num_gpus =
      static_cast<int>(OneOf("--gpus", space.gpus(), &problems));
  RETURN_IF_ERROR(problems.ToStatus());
  if (scenario.batch().microbatch_size() == 0) {
    scenario.mutable_batch()->set_microbatch_size(1);
  }
  return plan::GivenForPlanners(request.label, scenario, num_gpus,
                                memory_limit_bytes);
}

// Refuses flags that only a graph uses.
absl::Status CheckScenarioFlags(const PlanFlags& plan) {
  Problems problems("weir plan");
  const auto refuse = [&](absl::string_view flag, bool is_given) {
    if (is_given) problems.Add(flag, "is given without --graph");
  };
  refuse("--machines", !plan.machines.empty());
  refuse("--bandwidth", !plan.bandwidth.empty());
  refuse("--straight", plan.straight);
  refuse("--fewer-machines", plan.fewer_machines);
  refuse("--use-memory-constraint", plan.published_memory);
  refuse("--paper-formula", plan.paper_formula);
  refuse("--activation-compression-ratio",
         plan.activation_compression_ratio.has_value());
  RefuseOfSearch(plan, &problems);
  return problems.ToStatus();
}

// Returns an error with the memory that would be enough. The request is valid,
// but the answer is negative.
absl::Status NothingFits(const plan::PaperPlanner& planner, const Flags& flags,
                         const scenarios::ResolvedScenario& given,
                         const absl::Status& why) {
  const double bytes = plan::EnoughMemoryBytes(planner, given);
  if (bytes == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        why.message(), "; no memory would do, expected other sizes"));
  }
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario unlimited,
                   Given(flags, /*memory_limit_bytes=*/0));
  const double device = plan::MostMemoryBytes(unlimited);
  return absl::FailedPreconditionError(absl::StrCat(
      given.label, ": ", planner.name, ": nothing fits ",
      FormatBytes(plan::MostMemoryBytes(given)),
      ": the smallest plan found needs ", FormatBytes(bytes), " of a GPU: ",
      bytes <= device
          ? absl::StrFormat("raise --memory-limit to %.0f bytes", bytes)
          : absl::StrCat("a GPU of ", given.device.name(), " has ",
                         FormatBytes(device), ", expected another device"),
      ", or more of --tp or --recompute, which need less"));
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
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario given,
                   Given(flags, flags.plan.request.memory_limit_bytes()));
  ASSIGN_OR_RETURN(std::vector<plan::PlannerResult> answers,
                   RunWithProgress(flags, planners, given));
  if (answers.empty()) {
    return absl::CancelledError("interrupted before a planner has answered");
  }
  if (planners.size() > 1) return answers;
  const absl::Status& planned = answers[0].planned;
  if (absl::IsNotFound(planned)) {
    const ElapsedLine line(flags.output, "looking for memory that would do");
    return NothingFits(*planners[0], flags, given, planned);
  }
  RETURN_IF_ERROR(planned);
  return answers;
}

absl::StatusOr<std::string> PlannerResultsText(const Flags& flags) {
  ASSIGN_OR_RETURN(const std::vector<plan::PlannerResult> answers,
                   PlannerResultsOf(flags));
  RETURN_IF_ERROR(WritePlanFiles(flags.output, plan::PlansOf(answers)));
  switch (flags.output.format) {
    case Format::kCsv:
      return plan::PlannerResultsCsv(answers);
    case Format::kJson:
      return Envelope(flags.command,
                      DumpJson(Json{{"algorithm", flags.plan.algorithm}}),
                      plan::PlannerResultsJson(answers));
    default:
      return plan::PlannerResultsTable(answers);
  }
}

}  // namespace

void AddPaperPlanners(Options* options, PlanFlags* plan) {
  Group group("Papers' planners", options);
  group.Text("--algorithm", "NAME",
             absl::StrCat("a paper's instead of the search: ", Names()),
             &plan->algorithm);
  group.Text("--graph,--profile-filename", "FILE",
             "profile graph for pipedream, instead of a scenario",
             &plan->graph);
  group.Add("--machines,--all-num-machines", "N,N,...",
            "with --graph: machines of each level, innermost first",
            [plan](const std::string& text) {
              ASSIGN_OR_RETURN(plan->machines, ParseCounts(text, 1));
              return absl::OkStatus();
            });
  group.Add("--bandwidth,--network-bandwidths", "RATE,RATE,...",
            "with --graph: bytes per second between the machines of each level",
            [plan](const std::string& text) {
              ASSIGN_OR_RETURN(plan->bandwidth, ParseRates(text));
              return absl::OkStatus();
            });
  group.Switch("--straight,--straight-pipeline",
               "with --graph: no stage is replicated",
               [plan](bool on) { plan->straight = on; });
  group.Switch("--fewer-machines,--use-fewer-machines",
               "with --graph: leaves machines out that do not help",
               [plan](bool on) { plan->fewer_machines = on; });
  group.Switch(
      "--use-memory-constraint",
      "with --graph: counts memory as the published code does; of 16e9 "
      "bytes unless --memory-limit says",
      [plan](bool on) { plan->published_memory = on; });
  group
      .Add("--activation-compression-ratio", "RATIO",
           "with --graph: transfers between stages count, so much smaller",
           [plan](const std::string& text) {
             ASSIGN_OR_RETURN(plan->activation_compression_ratio.emplace(),
                              ParsePositive(text));
             return absl::OkStatus();
           })
      .fallback = "transfers do not count";
  group.Switch("--paper-formula",
               "with --graph: the paper's, not the published code's",
               [plan](bool on) { plan->paper_formula = on; });
}

int RunPaperPlanners(const Flags& flags) {
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
                ? "interrupted: the planners that have answered"
                : "interrupted",
            flags.output);
  return InterruptExitCode();
}

}  // namespace weir::cli
