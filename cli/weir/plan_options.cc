// SPDX-License-Identifier: Apache-2.0
// "plan".
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/options/add_option.h"
#include "cli/options/import_options.h"
#include "cli/options/scenario_options.h"
#include "cli/options/shared_options.h"
#include "cli/weir/plan_space_options.h"
#include "cli/weir/weir_app.h"
#include "plan/papers/registry.h"

namespace weir::cli {
namespace {

// Parses "5%".
absl::StatusOr<double> ParsePercent(const std::string& text) {
  absl::string_view number = text;
  double percent = 0;
  if (!absl::ConsumeSuffix(&number, "%") ||
      !absl::SimpleAtod(number, &percent) || !(percent >= 0 && percent <= 95)) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", text, ", expected 0% to 95%, as in 5%"));
  }
  return percent / 100;
}

absl::StatusOr<uint32_t> ParsePatience(const std::string& text) {
  ASSIGN_OR_RETURN(const auto counts, ParseCounts(text, 0));
  if (counts.size() == 1) return counts[0];
  return absl::InvalidArgumentError(
      absl::StrCat("is ", text, ", expected a whole number from 0"));
}

absl::StatusOr<std::vector<double>> ParseRates(const std::string& text) {
  std::vector<double> rates;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(rates.emplace_back(), ParsePositive(part));
  }
  return rates;
}

void AddGoal(CLI::App* app, Flags* flags) {
  PlanRequest* request = &flags->plan.request;
  app->option_defaults()->group("Goal");
  AddChoice<Objective>(
      app, "--objective",
      "what to minimize (time, cost and energy per sample); energy needs "
      "--energy; pareto: all plans that no other plan dominates",
      {{"time", OBJECTIVE_TIME},
       {"memory", OBJECTIVE_MEMORY},
       {"cost", OBJECTIVE_COST},
       {"energy", OBJECTIVE_ENERGY},
       {"pareto", OBJECTIVE_PARETO}},
      [request](Objective objective) { request->set_objective(objective); })
      ->default_str("time");
  AddText(app, "--energy", "POWER",
          "power model with which plans get an energy: preset (h100-sxm, "
          "a100-sxm) or textproto file, see docs/energy.md",
          request->mutable_power_model());
  AddOption(
      app, "--node-power-cap", "WATTS",
      "most power of a node: the clock of all GPUs is lowered until it "
      "holds while all compute; needs --energy with clocks",
      ParsePositive,
      [request](double watts) { request->set_node_power_cap_watts(watts); })
      ->default_str("none");
  AddOption(
      app, "--rack-power-cap", "WATTS",
      "the same of a rack of --nodes-per-rack nodes", ParsePositive,
      [request](double watts) { request->set_rack_power_cap_watts(watts); })
      ->default_str("none");
  AddCount(app, "--nodes-per-rack", "nodes of a rack, for --rack-power-cap",
           [request](uint32_t nodes) { request->set_nodes_per_rack(nodes); });
  AddOption(app, "--memory-limit,--memory-size", "BYTES",
            "memory limit per GPU, as in 80GiB", ParseBytes,
            [request](double bytes) { request->set_memory_limit_bytes(bytes); })
      ->default_str("the device's");
  AddOption(app, "--memory-margin", "PERCENT",
            "part of a GPU's memory that plans leave free, as in 10%",
            ParsePercent,
            [request](double margin) { request->set_memory_margin(margin); })
      ->default_str("the prediction's interval");
  AddOption(
      app, "--price-per-gpu-hour", "PRICE",
      "price of one GPU for an hour, in any currency", ParsePositive,
      [request](double price) { request->set_price_per_gpu_hour(price); });
  AddOption(app, "--tokens", "N",
            "training tokens, as in 1T, for GPU-hours, days and price",
            ParseTokens,
            [request](double tokens) { request->set_tokens(tokens); })
      ->default_str("1B");
  AddCount(app, "--plans", "maximum number of plans to show",
           [request](uint32_t n) { request->set_num_plans(n); })
      ->default_str("5");
  AddOption(app, "--patience", "N",
            "stop after N candidates in a row without improvement (0: never)",
            ParsePatience, [request](uint32_t n) { request->set_patience(n); })
      ->default_str("300");
  AddOption(app, "--gap", "PERCENT",
            "stop when no plan can be faster by more than this, as in 5%",
            ParsePercent, [request](double gap) { request->set_gap(gap); })
      ->default_str("0%");
  AddSeconds(app, "--time-limit",
             "end the search after this time, with the best plans so far",
             &flags->plan.time_limit_seconds)
      ->default_str("none");
  AddJobs(app, "Goal", "parallel processes", &flags->num_jobs);
}

void AddPaperPlanners(CLI::App* app, PlanFlags* plan) {
  plan::PipeDreamOptions* pipedream = &plan->pipedream;
  std::string names;
  for (const plan::PaperPlanner& planner : plan::PaperPlanners()) {
    absl::StrAppend(&names, planner.name, ", ");
  }
  app->option_defaults()->group("Planners of papers");
  AddText(
      app, "--algorithm", "NAME",
      absl::StrCat("planner of a paper, instead of the search: ", names, "all"),
      &plan->algorithm);
  AddText(app, "--graph,--profile-filename", "FILE",
          "profile graph for pipedream, instead of a scenario", &plan->graph);
  AddOption(
      app, "--machines,--all-num-machines", "N,N,...",
      "with --graph: number of machines at each level, innermost first",
      [](const std::string& text) { return ParseCounts(text, 1); },
      [pipedream](const std::vector<uint32_t>& machines) {
        pipedream->num_machines.assign(machines.begin(), machines.end());
      });
  AddOption(app, "--bandwidth,--network-bandwidths", "RATE,RATE,...",
            "with --graph: bytes per second between the machines of each level",
            ParseRates, &pipedream->bytes_per_second);
  AddSwitch(app, "--straight,--straight-pipeline",
            "with --graph: do not replicate stages", &pipedream->straight);
  AddSwitch(app, "--fewer-machines,--use-fewer-machines",
            "with --graph: leave out machines that do not help",
            &pipedream->fewer_machines);
  AddSwitch(app, "--use-memory-constraint",
            "with --graph: check memory as the published code does, against "
            "--memory-limit or 16e9 bytes",
            &pipedream->published_memory);
  AddOption(app, "--activation-compression-ratio", "RATIO",
            "with --graph: count transfers between stages, with activations "
            "RATIO times smaller",
            ParsePositive, &pipedream->activation_compression_ratio)
      ->default_str("transfers are not counted");
  AddSwitch(app, "--paper-formula",
            "with --graph: use the formula of the paper, not that of the "
            "published code",
            &pipedream->paper_formula);
}

}  // namespace

void AddPlanCommand(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  CLI::App* plan = AddWeirCommand(
      app, "plan", "Searches for the best layout of a model on a cluster.",
      {"plan --model gpt2 --cluster dgx-h100 --gpus 8 --gbs 32 --schedule "
       "1f1b,gpipe",
       "plan --model gpt2-medium --cluster dgx-a100 --gbs 16 --pp 2,4 "
       "--recompute none --schedule 1f1b --objective pareto "
       "--price-per-gpu-hour 2.5 --out plans/",
       "plan pipedream-2bw-gpt-2.2b --algorithm pipedream-2bw",
       "plan --algorithm pipedream --graph graph.txt --machines 4,4 "
       "--bandwidth 1e9,2e8"},
      RunPlan, line);
  AddScenarioName(plan,
                  "fixed settings: preset or textproto file; flags override it",
                  &flags->scenario);
  AddGoal(plan, flags);
  AddPlanSpace(plan, &flags->plan);
  AddPaperPlanners(plan, &flags->plan);
  AddImports(plan, &flags->scenario);
  AddGivenScenario(plan, &flags->scenario);
  AddFlops(plan, &flags->flops);
  AddFormat(plan, /*csv=*/true, &flags->output);
  plan->option_defaults()->group("Output");
  AddSwitch(plan, "--explain",
            "explain why each further plan is worse than the first",
            &flags->plan.explain);
  AddSwitch(plan, "--stream",
            "with --format json: print each better plan as soon as it is "
            "found, and then the result, each on one line",
            &flags->plan.stream);
  AddText(plan, "--out", "DIR",
          "folder for the files of each plan: scenario, order of the passes "
          "as PyTorch's CSV, and those of --emit",
          &flags->output.out);
  AddEmit(plan,
          "with --out, the frameworks for which files are written that start "
          "the plan: arguments (.args), a job (.toml), overrides of a recipe "
          "(.yaml)",
          "that of --runtime", &flags->output);
  AddReport(plan, "--report",
            "the Pareto front, all layouts and why each one loses",
            &flags->output.report);
  AddForce(plan, &flags->output.force);
}

}  // namespace weir::cli
