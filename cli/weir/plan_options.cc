// SPDX-License-Identifier: Apache-2.0
// "plan".
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/options/add_option.h"
#include "cli/options/import_options.h"
#include "cli/options/scenario_options.h"
#include "cli/options/shared_options.h"
#include "cli/weir/weir_app.h"
#include "models/recompute.h"
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

absl::StatusOr<std::vector<std::string>> ParseWords(const std::string& text) {
  std::vector<std::string> words =
      absl::StrSplit(text, ',', absl::SkipWhitespace());
  if (words.empty()) return absl::InvalidArgumentError("is empty");
  return words;
}

// Returns a parser of a list of words, each one of `choices`.
auto ParserOf(const Choices& choices) {
  return [choices](
             const std::string& text) -> absl::StatusOr<std::vector<int>> {
    ASSIGN_OR_RETURN(const std::vector<std::string> words, ParseWords(text));
    std::vector<int> numbers;
    for (const std::string& word : words) {
      ASSIGN_OR_RETURN(numbers.emplace_back(), ParseChoice(word, choices));
    }
    return numbers;
  };
}

// Parses "none,selective:mlp+moe,full:block=2".
absl::StatusOr<std::vector<Recomputation>> ParseRecomputations(
    const std::string& text) {
  ASSIGN_OR_RETURN(const std::vector<std::string> words, ParseWords(text));
  std::vector<Recomputation> all;
  for (const std::string& word : words) {
    Recomputation one;
    if (word == "full:block=half") {
      one.set_mode(RECOMPUTE_FULL);
      one.set_method(RECOMPUTE_BLOCK);
      all.push_back(one);
      continue;
    }
    if (!models::ParseRecomputation(absl::AsciiStrToLower(word), &one)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "is ", word,
          ", expected none, selective, operators or full, selective: and "
          "modules (core_attn, mlp, moe, layernorm, moe_act, mla_up_proj, "
          "shared_experts) joined by +, or full: and uniform=N, block=N, "
          "block=half or every=N"));
    }
    all.push_back(one);
  }
  return all;
}

// Adds an option whose value is a list of these words, which are also its
// placeholder.
CLI::Option* AddWords(CLI::App* app, const std::string& name,
                      const std::string& words, const std::string& help,
                      google::protobuf::RepeatedPtrField<std::string>* target) {
  const std::vector<std::string> all = absl::StrSplit(words, ',');
  const auto parse =
      [all](
          const std::string& text) -> absl::StatusOr<std::vector<std::string>> {
    Choices choices;
    for (const std::string& word : all) choices.emplace_back(word, 0);
    RETURN_IF_ERROR(ParserOf(choices)(text).status());
    return ParseWords(absl::AsciiStrToLower(text));
  };
  return AddOption(app, name, words, help, parse, target);
}

void AddCounts(CLI::App* app, const std::string& names, const std::string& help,
               google::protobuf::RepeatedField<uint32_t>* target) {
  const auto parse = [](const std::string& text) {
    return ParseCounts(text, 1);
  };
  AddOption(app, names, "N,N,...", help, parse, target)
      ->default_str("all reasonable values");
}

void AddSizes(CLI::App* app, PlanSpace* space) {
  app->option_defaults()->group("Search space");
  AddCounts(app, "--gpus", "numbers of GPUs to use", space->mutable_gpus());
  app->get_option("--gpus")->default_str("all GPUs of the cluster");
  AddCounts(app, "--tp,--tensor-model-parallel-size", "tensor-parallel sizes",
            space->mutable_tensor());
  AddCounts(app, "--pp,--pipeline-model-parallel-size",
            "pipeline-parallel sizes (ranks)", space->mutable_pipeline());
  AddCounts(app, "--dp,--data-parallel-size", "data-parallel sizes",
            space->mutable_data());
  AddCounts(app, "--cp,--context-parallel-size", "context-parallel sizes",
            space->mutable_context());
  app->get_option("--cp")->default_str(
      "1 and the powers of two up to 8 that leave each GPU 8192 tokens or "
      "more");
  AddCounts(app, "--ep,--expert-model-parallel-size", "expert-parallel sizes",
            space->mutable_expert());
  AddCounts(app, "--etp,--expert-tensor-parallel-size",
            "expert tensor-parallel sizes", space->mutable_expert_tensor());
  app->get_option("--etp")->default_str("1 and --tp");
  AddCounts(app, "--data-replicate,--num-distributed-optimizer-instances",
            "numbers of groups within which sharded data is sharded",
            space->mutable_data_replicate());
  app->get_option("--data-replicate")->default_str("1");
  AddCounts(app, "--chunks,--vpp", "stages per rank", space->mutable_chunks());
  AddCounts(app, "--mbs,--micro-batch-size", "sequences per microbatch",
            space->mutable_microbatch_size());
}

void AddKinds(CLI::App* app, PlanFlags* plan) {
  PlanSpace* space = plan->request.mutable_space();
  app->option_defaults()->group("Search space");
  AddOption(app, "--schedule", "S,S,...",
            "schedules to consider (weir schedule list), or all", ParseWords,
            [space](const std::vector<std::string>& words) {
              const bool all =
                  words.size() == 1 && absl::EqualsIgnoreCase(words[0], "all");
              space->set_any_runtime(all);
              space->clear_schedules();
              if (!all) {
                space->mutable_schedules()->Assign(words.begin(), words.end());
              }
            })
      ->default_str("those of the runtime")
      ->join(',');
  AddSwitch(app, "--asynchronous", "also consider schedules without a flush",
            [space](bool on) { space->set_asynchronous(on); });
  AddSwitch(app, "--synchronous",
            "use only those of --schedule that have a flush",
            &plan->synchronous);
  AddOption(app, "--recompute,--recompute-granularity",
            "none,selective,operators,full,...",
            "activations to recompute, also selective:mlp+moe (modules) and "
            "full:block=2 (method and layers of each stage, or half)",
            ParseRecomputations,
            [space](const std::vector<Recomputation>& all) {
              space->clear_recompute();
              space->clear_partial_recompute();
              for (const Recomputation& one : all) {
                if (one.modules().empty() &&
                    one.method() == RECOMPUTE_METHOD_UNSPECIFIED) {
                  space->add_recompute(one.mode());
                } else {
                  *space->add_partial_recompute() = one;
                }
              }
            })
      ->default_str("all useful ones");
  AddWords(app, "--order", "tp-dp-pp,tp-pp-dp",
           "orders of the parallel dimensions in GPU numbers",
           space->mutable_orders())
      ->default_str("both");
  AddWords(app, "--sharding", "none,optimizer,full",
           "what to shard across data-parallel ranks: nothing, optimizer "
           "states (ZeRO-1), or also weights and gradients (ZeRO-3)",
           space->mutable_sharding())
      ->default_str("all");
  AddSwitch(app, "--even-layers",
            "only plans with the same number of blocks in every stage",
            [space](bool on) { space->set_even_layers_only(on); });
}

// Parses one or more of "0,0.5,1".
absl::StatusOr<std::vector<double>> ParseFractions(const std::string& text) {
  std::vector<double> fractions;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    double& fraction = fractions.emplace_back();
    if (!absl::SimpleAtod(part, &fraction) ||
        !(fraction >= 0 && fraction <= 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", text, ", expected numbers from 0 to 1"));
    }
  }
  return fractions;
}

void AddTechniques(CLI::App* app, PlanSpace* space) {
  constexpr char kWhereNeeded[] = "where nothing else fits (docs/plan.md)";
  app->option_defaults()->group("Search space");
  AddOption(
      app, "--cpu-offloading-num-layers", "N,N,...",
      "blocks of each stage whose saved activations are copied to the host and "
      "back; 0: none",
      [](const std::string& text) { return ParseCounts(text, 0); },
      space->mutable_cpu_offloading_num_layers())
      ->default_str(kWhereNeeded);
  AddSwitch(app, "--optimizer-cpu-offload",
            "keep and update all optimizer states on the host",
            [space](bool on) {
              space->clear_optimizer_offload_fraction();
              space->add_optimizer_offload_fraction(on ? 1 : 0);
            });
  AddOption(app, "--optimizer-offload-fraction", "F,F,...",
            "fractions of the optimizer states that the host keeps and updates",
            ParseFractions, space->mutable_optimizer_offload_fraction())
      ->default_str(kWhereNeeded);
  AddOption(app, "--vocabulary-parallel", "none,one-barrier,two-barriers",
            "how the vocabulary is sharded across pipeline ranks",
            ParserOf({{"none", VOCABULARY_NOT_SHARDED},
                      {"one-barrier", VOCABULARY_ONE_BARRIER},
                      {"two-barriers", VOCABULARY_TWO_BARRIERS}}),
            [space](const std::vector<int>& modes) {
              space->mutable_vocabulary_parallel()->Assign(modes.begin(),
                                                           modes.end());
            })
      ->default_str("none");
  AddSwitch(app, "--overlap-moe-expert-parallel-comm",
            "a backward and the forward after it run as a pair, whose kernels "
            "overlap with the exchanges of its experts",
            [space](bool on) {
              space->clear_overlap_expert_exchange();
              space->add_overlap_expert_exchange(on);
            })
      ->default_str("both, if --runtime has it");
  AddSwitch(app, "--tp-comm-overlap",
            "tensor-parallel collectives run in pieces that overlap with GEMMs",
            [space](bool on) {
              space->clear_tp_comm_overlap();
              space->add_tp_comm_overlap(on);
            })
      ->default_str("both, if --runtime has it");
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
            "fraction of a GPU's memory that plans leave free", ParsePercent,
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
            "stop when no plan can be faster by more than this", ParsePercent,
            [request](double gap) { request->set_gap(gap); })
      ->default_str("0%");
  AddSeconds(app, "--time-limit",
             "end the search after this time, with the best plans so far",
             &flags->plan.time_limit_seconds);
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
  AddSizes(plan, flags->plan.request.mutable_space());
  AddKinds(plan, &flags->plan);
  AddTechniques(plan, flags->plan.request.mutable_space());
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
