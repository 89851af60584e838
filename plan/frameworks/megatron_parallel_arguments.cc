// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "plan/frameworks/argument_values.h"
#include "plan/frameworks/megatron_argument_groups.h"
#include "plan/frameworks/megatron_argument_table.h"
#include "plan/frameworks/megatron_settings.h"

namespace weir::plan {
namespace {

// Returns an argument for a type of exchange. Megatron-LM takes one for all
// layers, or a list with one per layer, which is not simulated.
MegatronArgument ContextMethods() {
  const auto method = [](ContextMethod of) {
    return
        [of](MegatronSettings* p) { p->parallelism().set_context_method(of); };
  };
  MegatronArgument argument =
      WordArgument({{"p2p", method(CONTEXT_P2P)},
                    {"all_gather", method(CONTEXT_ALL_GATHER)},
                    {"a2a", method(CONTEXT_A2A)},
                    {"a2a+p2p", method(CONTEXT_A2A_P2P)}});
  argument.is_list = true;
  return argument;
}

std::string TakeContextSizes(const std::string& text,
                             MegatronSettings* settings) {
  settings->parallelism().clear_hierarchical_context();
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar("[], "), absl::SkipEmpty())) {
    uint32_t size = 0;
    if (!absl::SimpleAtoi(word, &size) || size == 0) {
      return "whole numbers, as in 2 4";
    }
    settings->parallelism().add_hierarchical_context(size);
  }
  return "";
}

}  // namespace

std::map<std::string, MegatronArgument> ParallelArguments() {
  return {
      {"tensor-model-parallel-size",
       SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_tensor(n);
       })},
      {"pipeline-model-parallel-size",
       SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_pipeline(n);
       })},
      {"expert-model-parallel-size",
       SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_expert(n);
       })},
      {"num-virtual-stages-per-pipeline-rank",
       SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_chunks(n);
       })},
      {"pipeline-model-parallel-layout",
       {true,
        [](const std::string& text, MegatronSettings* p) {
          p->parallelism().set_layout(text);
          return std::string();
        }}},
      {"decoder-first-pipeline-num-layers",
       SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_decoder_first_pipeline_num_layers(n);
       })},
      {"decoder-last-pipeline-num-layers",
       SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_decoder_last_pipeline_num_layers(n);
       })},
      {"account-for-embedding-in-pipeline-split",
       SwitchArgument([](MegatronSettings* p) {
         p->parallelism().set_account_for_embedding_in_pipeline_split(true);
       })},
      {"account-for-loss-in-pipeline-split",
       SwitchArgument([](MegatronSettings* p) {
         p->parallelism().set_account_for_loss_in_pipeline_split(true);
       })},
      {"num-layers-per-virtual-pipeline-stage",
       SizeArgument(
           [](MegatronSettings* p, uint32_t n) { p->layers_per_stage = n; })},
      {"context-parallel-size",
       SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_context(n);
       })},
      {"cp-comm-type", ContextMethods()},
      {"hierarchical-context-parallel-sizes",
       {true, TakeContextSizes, /*is_list=*/true}},
      {"expert-tensor-parallel-size",
       SizeArgument(
           [](MegatronSettings* p, uint32_t n) { p->expert_tensor = n; })},
      {"num-distributed-optimizer-instances",
       SizeArgument([](MegatronSettings* p, uint32_t n) {
         if (n > 1) p->parallelism().set_data_replicate(n);
       })},
      {"sequence-parallel", SwitchArgument([](MegatronSettings* p) {
         p->parallelism().set_sequence_parallel(true);
       })},
      {"use-tp-pp-dp-mapping", SwitchArgument([](MegatronSettings* p) {
         p->parallelism().set_order("tp-pp-dp");
       })},
      {"no-overlap-p2p-communication",
       SwitchArgument([](MegatronSettings* p) { p->overlap_p2p = false; })},
      {"no-scatter-gather-tensors-in-pipeline",
       SwitchArgument(
           [](MegatronSettings* p) { p->scatters_transfers = false; })},
  };
}

}  // namespace weir::plan
