// SPDX-License-Identifier: Apache-2.0
#include "cli/options/layer_options.h"

#include <cstdint>
#include <vector>

#include "base/values.h"
#include "cli/options/adapter_options.h"
#include "cli/options/add_option.h"
#include "cli/options/flags.h"
#include "cli/options/memory_options.h"
#include "cli/options/precision_options.h"
#include "scenarios/packed_sequences.h"
#include "scenarios/scenario.pb.h"

namespace weir::cli {
namespace {

void AddDefaults(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  AddText(app, "--defaults", "SET",
          "training options that are not given: modern, megatron-2021, "
          "textbook, or textproto file (docs/defaults.md)",
          scenario->mutable_defaults())
      ->group("Training")
      ->default_str("by the model");
}

// Adds the layout of a layer's work, which "plan" searches.
void AddLayerLayout(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Parallelism");
  AddCount(app, "--tp,--tensor-model-parallel-size", "tensor-parallel size",
           [=](uint32_t n) { scenario->mutable_parallelism()->set_tensor(n); })
      ->default_str("1");
  AddCount(app, "--cp,--context-parallel-size",
           "context-parallel size: GPUs that share the tokens of a sequence",
           [=](uint32_t n) { scenario->mutable_parallelism()->set_context(n); })
      ->default_str("1");
  AddCount(app, "--ep,--expert-model-parallel-size", "expert-parallel size",
           [=](uint32_t n) { scenario->mutable_parallelism()->set_expert(n); })
      ->default_str("1");
  AddCount(app, "--etp,--expert-tensor-parallel-size",
           "expert tensor-parallel size: GPUs that share each expert",
           [=](uint32_t n) {
             scenario->mutable_parallelism()->set_expert_tensor(n);
           })
      ->default_str("--tp");
  app->option_defaults()->group("Training");
  AddCount(
      app, "--mbs,--micro-batch-size", "sequences per microbatch",
      [=](uint32_t n) { scenario->mutable_batch()->set_microbatch_size(n); })
      ->default_str("1");
  AddChoice<RecomputeMode>(app, "--recompute,--recompute-granularity",
                           "activations to recompute in the backward",
                           {{"none", RECOMPUTE_NONE},
                            {"selective", RECOMPUTE_SELECTIVE},
                            {"operators", RECOMPUTE_OPERATORS},
                            {"full", RECOMPUTE_FULL}},
                           [=](RecomputeMode mode) {
                             scenario->mutable_training()->set_recompute(mode);
                           })
      ->default_str("none");
  AddRecomputation(app, scenario);
}

// Adds what else changes a layer's work.
void AddLayerSettings(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  AddChoice<ContextMethod>(
      app, "--cp-comm-type",
      "exchange of keys and values between context-parallel GPUs",
      {{"p2p", CONTEXT_P2P},
       {"all_gather", CONTEXT_ALL_GATHER},
       {"a2a", CONTEXT_A2A},
       {"a2a+p2p", CONTEXT_A2A_P2P}},
      [=](ContextMethod method) {
        scenario->mutable_parallelism()->set_context_method(method);
      })
      ->group("Parallelism")
      ->default_str("p2p");
  AddOption(
      app, "--hierarchical-context-parallel-sizes", "N,N",
      "GPUs of an all-to-all and of a ring, for a2a+p2p", ParseNumbers,
      [=](const std::vector<uint32_t>& sizes) {
        scenario->mutable_parallelism()->mutable_hierarchical_context()->Assign(
            sizes.begin(), sizes.end());
      })
      ->group("Parallelism");
  AddSwitch(app, "--sequence-parallel",
            "Megatron sequence parallelism across the tensor-parallel group",
            &flags->sequence_parallel)
      ->group("Parallelism")
      ->default_str("by --defaults");
  app->option_defaults()->group("Training");
  AddOption(
      app, "--seq,--seq-length", "N", "tokens per sequence, as in 8192 or 8k",
      ParseSize,
      [=](uint32_t n) { scenario->mutable_batch()->set_sequence_length(n); })
      ->default_str("the model's");
  AddOption(app, "--packed-sequences,--sequence-lengths", "LENGTHS",
            "tokens of the documents that are packed into a sequence: 2048 or "
            "2k, uniform:SHORTEST-LONGEST, lognormal:MEAN,DEVIATION, "
            "TOKENS*COUNT,... or none (docs/packed-sequences.md)",
            scenarios::ParseSequenceLengths,
            [=](const SequenceLengths& lengths) {
              *scenario->mutable_batch()->mutable_packed_sequences() = lengths;
            })
      ->default_str("none");
  AddPrecision(app, flags);
  AddSwitch(app, "--flash-attention,--use-flash-attn",
            "fused attention, which stores no score matrix",
            &flags->flash_attention)
      ->default_str("by --defaults");
  AddChoice<AttentionKernel>(
      app, "--attention-kernel",
      "library of fused attention: flash-attention-1, flash-attention-triton, "
      "flash-attention-2, flash-attention-3 or cudnn",
      {{"flash-attention-1", FLASH_ATTENTION_1},
       {"flash-attention-triton", FLASH_ATTENTION_TRITON},
       {"flash-attention-2", FLASH_ATTENTION_2},
       {"flash-attention-3", FLASH_ATTENTION_3},
       {"cudnn", CUDNN}},
      [=](AttentionKernel kernel) {
        scenario->mutable_training()->set_attention_kernel(kernel);
      })
      ->type_name("LIBRARY")
      ->default_str("that of --runtime");
  AddOption(app, "--expert-imbalance", "X",
            "tokens of the most loaded expert over the mean, in expectation",
            ParsePositive,
            [=](double imbalance) {
              scenario->mutable_training()->set_expert_imbalance(imbalance);
            })
      ->default_str("1");
  AddRouting(app, scenario);
  AddCudaGraphs(app, scenario);
  AddSwitch(app, "--dropout",
            "the model has dropout, whose masks are saved for the backward",
            &flags->dropout);
}

}  // namespace

void AddLayerWork(CLI::App* app, ScenarioFlags* flags) {
  AddLayerLayout(app, flags);
  AddDefaults(app, flags);
  AddLayerSettings(app, flags);
}

void AddGivenLayerWork(CLI::App* app, ScenarioFlags* flags) {
  AddDefaults(app, flags);
  AddLayerSettings(app, flags);
}

}  // namespace weir::cli
