// SPDX-License-Identifier: Apache-2.0
#include "cli/options/adapter_options.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/values.h"
#include "cli/options/add_option.h"
#include "models/cuda_graphs.h"
#include "models/recipe.pb.h"
#include "scenarios/check_training.h"

namespace weir::cli {
namespace {

absl::StatusOr<std::vector<int>> ParseLoraModules(const std::string& text) {
  const Choices choices = {{"linear_qkv", LINEAR_QKV},
                           {"linear_proj", LINEAR_PROJ},
                           {"linear_fc1", LINEAR_FC1},
                           {"linear_fc2", LINEAR_FC2}};
  return ParseChoices(text, choices);
}

absl::StatusOr<std::vector<int>> ParseScopes(const std::string& text) {
  Choices choices;
  for (const CudaGraphScope scope : models::CudaGraphScopes()) {
    choices.emplace_back(models::Name(scope), scope);
  }
  return ParseChoices(text, choices);
}

absl::StatusOr<double> ParseCapacity(const std::string& text) {
  double factor = 0;
  if (!absl::SimpleAtod(text, &factor) || !(factor >= 0 && factor <= 1e3)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", EscapeLine(text), ", expected 0 (accepts all) to 1000"));
  }
  return factor;
}

// Returns a parser of whole numbers from 0 to `most`, the range that scenarios
// are checked for.
auto ParserUpTo(uint32_t most, const std::string& zero) {
  return [=](const std::string& text) -> absl::StatusOr<uint32_t> {
    const auto counts = ParseCounts(text, 0);
    if (counts.ok() && counts->size() == 1 && counts->front() <= most) {
      return counts->front();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", EscapeLine(text), ", expected a whole number from 0 (", zero,
        ") to ", most));
  };
}

const std::vector<std::pair<absl::string_view, OperandFormat>>& Formats() {
  static const auto& formats =
      *new std::vector<std::pair<absl::string_view, OperandFormat>>{
          {"16-bit", OPERAND_16_BIT},
          {"fp8", OPERAND_FP8},
          {"fp8_block", OPERAND_FP8_BLOCK},
          {"mxfp8", OPERAND_MXFP8},
          {"nvfp4", OPERAND_NVFP4}};
  return formats;
}

}  // namespace

void AddAdapters(CLI::App* app, Scenario* scenario) {
  AddOption(app, "--lora-rank,--lora-dim", "N",
            "train low-rank adapters of this rank, not the model's weights "
            "(docs/lora.md); 0: none, also if the scenario has them",
            ParserUpTo(scenarios::kMaxLoraRank, "none"),
            [=](uint32_t rank) {
              scenario->mutable_training()->mutable_lora()->set_rank(rank);
            })
      ->default_str("0");
  AddOption(app, "--lora-target-modules", "MODULE,...",
            "linear layers with adapters: linear_qkv, linear_proj, "
            "linear_fc1, linear_fc2",
            ParseLoraModules,
            [=](const std::vector<int>& modules) {
              scenario->mutable_training()
                  ->mutable_lora()
                  ->mutable_target_modules()
                  ->Assign(modules.begin(), modules.end());
            })
      ->default_str("all, with --lora-rank");
}

void AddMuon(CLI::App* app, Scenario* scenario) {
  AddOption(app, "--muon-num-ns-steps", "N",
            "Newton-Schulz iterations of each update of Muon",
            ParserUpTo(scenarios::kMaxMuonIterations, "the default"),
            [=](uint32_t steps) {
              scenario->mutable_training()->set_muon_num_ns_steps(steps);
            })
      ->default_str("5, with Muon");
}

void AddCudaGraphs(CLI::App* app, Scenario* scenario) {
  AddOption(app, "--cuda-graph-scope", "PART,...",
            "what CUDA graphs launch: attn, mlp, moe, moe_router, "
            "moe_preprocess, mamba; or full_iteration",
            ParseScopes,
            [=](const std::vector<int>& scopes) {
              scenario->mutable_training()->mutable_cuda_graph_scope()->Assign(
                  scopes.begin(), scopes.end());
            })
      ->default_str("none");
  AddSwitch(
      app, "--moe-router-fusion", "fuse the kernels of the router",
      [=](bool on) { scenario->mutable_training()->set_moe_router_fusion(on); })
      ->default_str("as --runtime does");
}

void AddRouting(CLI::App* app, Scenario* scenario) {
  constexpr uint32_t kMostGroups = 1e5;
  AddOption(app, "--moe-router-num-groups", "N",
            "groups of experts of node-limited routing; 0: none",
            ParserUpTo(kMostGroups, "none"),
            [=](uint32_t groups) {
              scenario->mutable_training()->set_moe_router_num_groups(groups);
            })
      ->default_str("the model's");
  AddOption(app, "--moe-router-group-topk", "N",
            "groups from which a token chooses its experts",
            ParserUpTo(kMostGroups, "all"),
            [=](uint32_t groups) {
              scenario->mutable_training()->set_moe_router_group_topk(groups);
            })
      ->default_str("the model's");
  AddOption(
      app, "--moe-expert-capacity-factor", "C",
      "tokens that an expert accepts over its even share; others are "
      "dropped. 0: accepts all",
      ParseCapacity,
      [=](double factor) {
        scenario->mutable_training()->set_moe_expert_capacity_factor(factor);
      })
      ->default_str("the model's");
  AddSwitch(
      app, "--moe-pad-expert-input-to-capacity",
      "pad the tokens of each expert to its capacity", [=](bool on) {
        scenario->mutable_training()->set_moe_pad_expert_input_to_capacity(on);
      });
}

void AddTokenDispatcher(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Schedule");
  const auto set = [=](const char* flag, bool deepep) {
    flags->deepep[flag] = deepep;
    scenario->mutable_communication()->set_token_dispatcher(
        deepep ? TOKENS_DEEPEP : TOKENS_ALL_TO_ALL);
  };
  AddChoice<TokenDispatcher>(
      app, "--moe-token-dispatcher-type",
      "how tokens reach experts: alltoall (NCCL) or flex (DeepEP or HybridEP; "
      "docs/experts.md)",
      {{"alltoall", TOKENS_ALL_TO_ALL}, {"flex", TOKENS_DEEPEP}},
      [=](TokenDispatcher dispatcher) {
        set("--moe-token-dispatcher-type", dispatcher == TOKENS_DEEPEP);
      })
      ->default_str("alltoall");
  AddSwitch(app, "--moe-enable-deepep", "--moe-token-dispatcher-type flex",
            [=](bool on) { set("--moe-enable-deepep", on); });
  // Parsed after the flags above, whose program it replaces.
  AddChoice<TokenDispatcher>(
      app, "--moe-flex-dispatcher-backend",
      "program of --moe-token-dispatcher-type flex, which this implies",
      {{"deepep", TOKENS_DEEPEP}, {"hybridep", TOKENS_HYBRID_EP}},
      [=](TokenDispatcher dispatcher) {
        flags->flex_backend = dispatcher;
        scenario->mutable_communication()->set_token_dispatcher(dispatcher);
      })
      ->default_str("deepep, with flex");
  const auto add = [=](const char* flag, const char* library, bool* is_given,
                       const char* count) {
    AddOption(app, flag, "N",
              absl::StrCat("multiprocessors that the kernels of ", library,
                           " occupy"),
              ParserUpTo(scenarios::kMaxDispatchMultiprocessors, "the default"),
              [=](uint32_t value) {
                *is_given = true;
                scenario->mutable_communication()->set_dispatch_multiprocessors(
                    value);
              })
        ->default_str(absl::StrCat(count, " with ", library));
  };
  add("--moe-deepep-num-sms", "DeepEP", &flags->deepep_multiprocessors, "20");
  add("--moe-hybridep-num-sms", "HybridEP", &flags->hybridep_multiprocessors,
      "16");
}

void AddOverlaps(CLI::App* app, Scenario* scenario) {
  app->option_defaults()->group("Schedule");
  AddSwitch(
      app, "--overlap-moe-expert-parallel-comm",
      "a backward and the forward after it run as a pair, whose kernels "
      "overlap with the exchanges of its experts",
      [=](bool on) {
        scenario->mutable_communication()->set_overlap_expert_exchange(on);
      });
  AddSwitch(app, "--tp-comm-overlap",
            "tensor-parallel collectives run in pieces that overlap with GEMMs "
            "(with --sequence-parallel)",
            [=](bool on) {
              scenario->mutable_communication()->set_tp_comm_overlap(on);
            })
      ->default_str("as --runtime does");
}

void AddOtherFormats(CLI::App* app, Scenario* scenario) {
  AddChoice<OperandFormat>(
      app, "--attention-format", "format of the core of fused attention",
      Formats(),
      [=](OperandFormat format) {
        scenario->mutable_training()->set_attention_format(format);
      })
      ->default_str("16-bit, unless the recipe says otherwise");
  AddSwitch(app, "--fp8-dot-product-attention", "--attention-format fp8",
            [=](bool on) {
              scenario->mutable_training()->set_attention_format(
                  on ? OPERAND_FP8 : OPERAND_16_BIT);
            });
  AddChoice<OperandFormat>(
      app, "--dispatch-format", "format of tokens on their way to experts",
      Formats(),
      [=](OperandFormat format) {
        scenario->mutable_training()->set_dispatch_format(format);
      })
      ->default_str("16-bit, unless the recipe says otherwise");
}

absl::Status CheckTokenDispatcher(const ScenarioFlags& flags) {
  const auto type = flags.deepep.find("--moe-token-dispatcher-type");
  const auto enabled = flags.deepep.find("--moe-enable-deepep");
  Problems problems("command line");
  const bool is_deepep =
      flags.flex_backend.has_value()
          ? *flags.flex_backend == TOKENS_DEEPEP
          : std::any_of(flags.deepep.begin(), flags.deepep.end(),
                        [](const auto& flag) { return flag.second; });
  if (flags.hybridep_multiprocessors && is_deepep) {
    problems.Add("--moe-hybridep-num-sms",
                 "is given with DeepEP, expected --moe-deepep-num-sms");
  }
  if (flags.deepep_multiprocessors && flags.flex_backend == TOKENS_HYBRID_EP) {
    problems.Add("--moe-deepep-num-sms",
                 "is given with HybridEP, expected --moe-hybridep-num-sms");
  }
  RETURN_IF_ERROR(problems.ToStatus());
  if (flags.flex_backend.has_value()) {
    const bool hybrid = *flags.flex_backend == TOKENS_HYBRID_EP;
    const std::string backend = hybrid ? "hybridep" : "deepep";
    if (type != flags.deepep.end() && !type->second) {
      problems.Add("--moe-flex-dispatcher-backend",
                   absl::StrCat("is ", backend,
                                ", which requires --moe-token-dispatcher-type "
                                "flex instead of alltoall"));
    }
    if (enabled != flags.deepep.end() && enabled->second == hybrid) {
      problems.Add(
          absl::StrCat("--moe-enable-deepep", enabled->second ? "" : "=false"),
          absl::StrCat("contradicts --moe-flex-dispatcher-backend ", backend,
                       ", expected one of them"));
    }
    return problems.ToStatus();
  }
  if (type == flags.deepep.end() || enabled == flags.deepep.end() ||
      type->second == enabled->second) {
    return absl::OkStatus();
  }
  problems.Add(
      absl::StrCat("--moe-enable-deepep", enabled->second ? "" : "=false"),
      absl::StrCat("contradicts --moe-token-dispatcher-type ",
                   type->second ? "flex" : "alltoall",
                   ", expected one of them"));
  return problems.ToStatus();
}

}  // namespace weir::cli
