// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/options/option_group.h"
#include "cli/options/options.h"
#include "cli/weir/plan_papers.h"

namespace weir::cli {
namespace {

// Returns true for options that the search decides or that only one plan has.
bool IsSearched(const Option& option) {
  static const auto& names = *new std::set<std::string>{
      "--tp",        "--pp",           "--dp",     "--ep",
      "--chunks",    "--mbs",          "--order",  "--gpus",
      "--layout",    "--schedule",     "--costs",  "--blocks-per-stage",
      "--recompute", "--microbatches", "--batches"};
  return names.count(FirstName(option)) > 0;
}

// Parses "80GiB", "80e9" or "512 MiB".
absl::StatusOr<double> ParseBytes(absl::string_view text) {
  const size_t unit = text.find_first_not_of("0123456789.eE+-");
  const absl::string_view number = text.substr(0, unit);
  absl::string_view name =
      unit == absl::string_view::npos ? "" : text.substr(unit);
  while (absl::StartsWith(name, " ")) name.remove_prefix(1);
  static const auto& units = *new std::vector<std::pair<std::string, double>>{
      {"", 1},
      {"B", 1},
      {"kB", 1e3},
      {"MB", 1e6},
      {"GB", 1e9},
      {"TB", 1e12},
      {"KiB", 1024},
      {"MiB", 1048576.0},
      {"GiB", 1073741824.0},
      {"TiB", 1099511627776.0}};
  for (const auto& [word, factor] : units) {
    if (!absl::EqualsIgnoreCase(name, word)) continue;
    const auto value = ParsePositive(number);
    if (value.ok()) return factor * *value;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", text, ", expected bytes above 0, as in 80GiB or 80e9"));
}

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

template <typename Repeated>
void AddCounts(Group& group, absl::string_view names, absl::string_view help,
               Repeated* target) {
  group
      .Add(names, "N,N,...", help,
           [=](const std::string& text) {
             ASSIGN_OR_RETURN(const auto counts, ParseCounts(text, 1));
             target->Assign(counts.begin(), counts.end());
             return absl::OkStatus();
           })
      .fallback = "all reasonable values";
}

// Adds a list of words, each one of `choices` if there are any.
template <typename Take>
Option& AddWords(Group& group, absl::string_view names, absl::string_view value,
                 absl::string_view help, const Choices& choices, Take take) {
  return group.Add(names, value, help, [=](const std::string& text) {
    const std::vector<std::string> words =
        absl::StrSplit(text, ',', absl::SkipWhitespace());
    if (words.empty()) return absl::InvalidArgumentError("is empty");
    std::vector<std::pair<std::string, int>> chosen;
    for (const std::string& word : words) {
      int value = 0;
      if (!choices.empty()) {
        ASSIGN_OR_RETURN(value, ParseChoice(word, choices));
      }
      chosen.emplace_back(word, value);
    }
    take(chosen);
    return absl::OkStatus();
  });
}

using NamedNumbers = std::vector<std::pair<std::string, int>>;

auto Into(google::protobuf::RepeatedPtrField<std::string>* target) {
  return [target](const NamedNumbers& words) {
    target->Clear();
    for (const auto& [word, value] : words) {
      *target->Add() = absl::AsciiStrToLower(word);
    }
  };
}

void AddSizes(Options* options, PlanSpace* space) {
  Group group("Search space", options);
  AddCounts(group, "--gpus", "numbers of GPUs to use", space->mutable_gpus());
  options->back().fallback = "all GPUs of the cluster";
  AddCounts(group, "--tp,--tensor-model-parallel-size", "tensor-parallel sizes",
            space->mutable_tensor());
  AddCounts(group, "--pp,--pipeline-model-parallel-size",
            "pipeline-parallel sizes (ranks)", space->mutable_pipeline());
  AddCounts(group, "--dp,--data-parallel-size", "data-parallel sizes",
            space->mutable_data());
  AddCounts(group, "--ep,--expert-model-parallel-size", "expert-parallel sizes",
            space->mutable_expert());
  AddCounts(group, "--chunks,--vpp", "stages per rank",
            space->mutable_chunks());
  AddCounts(group, "--mbs,--micro-batch-size", "sequences per microbatch",
            space->mutable_microbatch_size());
}

void AddKinds(Options* options, PlanFlags* plan) {
  Group group("Search space", options);
  PlanSpace* space = plan->request.mutable_space();
  auto* schedules = space->mutable_schedules();
  Option& schedule =
      AddWords(group, "--schedule", "S,S,...",
               "schedules to consider (weir schedule list)", {},
               [=](const NamedNumbers& words) {
                 schedules->Clear();
                 const bool all = words.size() == 1 &&
                                  absl::EqualsIgnoreCase(words[0].first, "all");
                 space->set_any_runtime(all);
                 if (all) return;
                 for (const auto& [word, value] : words)
                   *schedules->Add() = word;
               });
  schedule.fallback = "those that the runtime executes; all: every schedule";
  schedule.repeats = true;
  group.Switch("--asynchronous", "also consider schedules without a flush",
               [=](bool on) { space->set_asynchronous(on); });
  group.Switch("--synchronous",
               "use only those of --schedule that have a flush",
               [=](bool on) { plan->synchronous = on; });
  auto* recompute = space->mutable_recompute();
  AddWords(group, "--recompute,--recompute-granularity", "none,selective,full",
           "activations to recompute",
           {{"none", RECOMPUTE_NONE},
            {"selective", RECOMPUTE_SELECTIVE},
            {"full", RECOMPUTE_FULL}},
           [=](const NamedNumbers& words) {
             recompute->Clear();
             for (const auto& [word, mode] : words) recompute->Add(mode);
           })
      .fallback = "all";
  AddWords(group, "--order", "tp-dp-pp,tp-pp-dp",
           "orders of the parallel dimensions in GPU numbers",
           {{"tp-dp-pp", 0}, {"tp-pp-dp", 0}}, Into(space->mutable_orders()))
      .fallback = "both";
  AddWords(group, "--sharding", "none,optimizer,full",
           "what to shard across data-parallel ranks: nothing, optimizer "
           "states (ZeRO-1), or also weights and gradients (ZeRO-3)",
           {{"none", 0}, {"optimizer", 0}, {"full", 0}},
           Into(space->mutable_sharding()))
      .fallback = "as in the scenario";
  group.Switch("--even-layers",
               "only plans with the same number of blocks in every stage",
               [=](bool on) { space->set_even_layers_only(on); });
}

void AddGoal(Options* options, Flags* flags) {
  Group group("Goal", options);
  PlanRequest* request = &flags->plan.request;
  group
      .Choice("--objective",
              "what to minimize (time and cost per sample); pareto: all plans "
              "that no other plan dominates",
              {{"time", OBJECTIVE_TIME},
               {"memory", OBJECTIVE_MEMORY},
               {"cost", OBJECTIVE_COST},
               {"pareto", OBJECTIVE_PARETO}},
              [=](int value) {
                request->set_objective(static_cast<Objective>(value));
              })
      .fallback = "time";
  group
      .Add("--memory-limit,--memory-size", "BYTES",
           "memory limit per GPU, as in 80GiB",
           [=](const std::string& text) {
             ASSIGN_OR_RETURN(const double bytes, ParseBytes(text));
             request->set_memory_limit_bytes(bytes);
             return absl::OkStatus();
           })
      .fallback = "the device's";
  group
      .Add("--memory-margin", "PERCENT",
           "fraction of a GPU's memory that plans leave free",
           [=](const std::string& text) {
             ASSIGN_OR_RETURN(const double margin, ParsePercent(text));
             request->set_memory_margin(margin);
             return absl::OkStatus();
           })
      .fallback = "5%";
  group.Add("--price-per-gpu-hour", "PRICE",
            "price of one GPU for an hour, in any currency",
            [=](const std::string& text) {
              ASSIGN_OR_RETURN(const double price, ParsePositive(text));
              request->set_price_per_gpu_hour(price);
              return absl::OkStatus();
            });
  group
      .Count("--plans", "maximum number of plans to show",
             [=](uint32_t n) { request->set_num_plans(n); })
      .fallback = "5";
  group
      .Add("--patience", "N",
           "stop after N candidates in a row without improvement (0: never)",
           [=](const std::string& text) {
             ASSIGN_OR_RETURN(const auto counts, ParseCounts(text, 0));
             if (counts.size() != 1) {
               return absl::InvalidArgumentError(absl::StrCat(
                   "is ", text, ", expected a whole number from 0"));
             }
             request->set_patience(counts[0]);
             return absl::OkStatus();
           })
      .fallback = "300";
  group
      .Count("--jobs,-j", "parallel processes",
             [=](uint32_t n) { flags->num_jobs = n; })
      .fallback = "number of cores";
}

}  // namespace

Options OptionsOfPlan(Flags* flags) {
  Options options;
  Group("", &options)
      .Text("SCENARIO", "",
            "fixed settings: preset or textproto file; flags override it",
            &flags->scenario.scenario);
  AddGoal(&options, flags);
  AddSizes(&options, flags->plan.request.mutable_space());
  AddKinds(&options, &flags->plan);
  AddPaperPlanners(&options, &flags->plan);
  for (Option& option : OptionsOfScenario(&flags->scenario)) {
    if (!IsSearched(option)) options.push_back(std::move(option));
  }
  AddFormat(&options, &flags->output, /*csv=*/true);
  Group output("Output", &options);
  output.Switch("--explain",
                "explain why each further plan is worse than the first",
                [=](bool on) { flags->plan.explain = on; });
  output.Text("--out", "DIR",
              "folder for the scenario, the Megatron-LM arguments and the "
              "PyTorch CSV of each plan",
              &flags->output.out);
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

}  // namespace weir::cli
