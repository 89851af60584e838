// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/plan_space_options.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/values.h"
#include "cli/options/add_option.h"
#include "models/recompute.h"

namespace weir::cli {
namespace {

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
  AddOption(
      app, "--optimizer-offload-fraction", "F,F,...",
      "fractions (0 to 1) of the optimizer states that the host keeps and "
      "updates",
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

}  // namespace

void AddPlanSpace(CLI::App* app, PlanFlags* plan) {
  AddSizes(app, plan->request.mutable_space());
  AddKinds(app, plan);
  AddTechniques(app, plan->request.mutable_space());
}

}  // namespace weir::cli
