// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "plan/frameworks/argument_values.h"
#include "plan/frameworks/megatron_argument_groups.h"
#include "plan/frameworks/megatron_argument_table.h"
#include "plan/frameworks/megatron_settings.h"

namespace weir::plan {
namespace {

std::string TakeWindow(const std::string& text, MegatronSettings* settings) {
  const std::string inside(
      absl::StripSuffix(absl::StripPrefix(text, "("), ")"));
  const std::vector<std::string> sides = absl::StrSplit(inside, ',');
  uint32_t left = 0;
  if (sides.size() != 2 || !absl::SimpleAtoi(sides[0], &left) ||
      sides[1] != "0") {
    return "tokens to the left and 0 to the right, as in 4095,0";
  }
  settings->model().set_sliding_window(left + 1);
  return "";
}

// Takes a list of 0 and 1, or 1 for all blocks.
std::string TakeExpertBlocks(const std::string& text,
                             MegatronSettings* settings) {
  if (text == "1") return "";
  for (const absl::string_view word : absl::StrSplit(
           absl::StripSuffix(absl::StripPrefix(text, "["), "]"), ',')) {
    if (word != "0" && word != "1") return "1 or a list such as [0,1,1]";
    settings->expert_blocks.push_back(word == "1");
  }
  return "";
}

}  // namespace

std::map<std::string, MegatronArgument> ModelArguments() {
  return {
      {"num-layers", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->model().set_num_layers(n);
       })},
      {"hidden-size", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->model().set_hidden_size(n);
       })},
      {"ffn-hidden-size", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->model().set_feed_forward_size(n);
       })},
      {"num-attention-heads", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->model().set_num_heads(n);
       })},
      {"kv-channels", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->model().set_head_size(n);
       })},
      {"group-query-attention",
       SwitchArgument([](MegatronSettings* p) { p->grouped_queries = true; })},
      {"num-query-groups", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->query_groups = n;
       })},
      {"swiglu", SwitchArgument([](MegatronSettings* p) {
         p->model().set_gated_feed_forward(true);
       })},
      {"normalization",
       WordArgument(
           {{"RMSNorm",
             [](MegatronSettings* p) { p->model().set_rms_norm(true); }},
            {"LayerNorm",
             [](MegatronSettings* p) { p->model().set_rms_norm(false); }}})},
      {"disable-bias-linear", SwitchArgument([](MegatronSettings* p) {
         p->disable_bias_linear = true;
       })},
      {"add-qkv-bias",
       SwitchArgument([](MegatronSettings* p) { p->add_qkv_bias = true; })},
      {"qk-layernorm", SwitchArgument([](MegatronSettings* p) {
         p->model().set_query_key_norm(true);
       })},
      {"position-embedding-type",
       WordArgument(
           {{"rope", [](MegatronSettings* p) { p->learned_positions = false; }},
            {"learned_absolute",
             [](MegatronSettings* p) { p->learned_positions = true; }}})},
      {"max-position-embeddings",
       SizeArgument(
           [](MegatronSettings* p, uint32_t n) { p->max_positions = n; })},
      {"mtp-num-layers", CountArgument([](MegatronSettings* p, uint32_t n) {
         p->model().set_num_mtp_modules(n);
       })},
      {"untie-embeddings-and-output-weights",
       SwitchArgument([](MegatronSettings* p) { p->untied = true; })},
      {"vocab-size", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->vocabulary = n;
       })},
      {"padded-vocab-size", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->padded_vocabulary = n;
       })},
      {"tokenizer-type",
       {true,
        [](const std::string& text, MegatronSettings* p) {
          p->tokenizer = text;
          return std::string();
        }}},
      // The padding is that of the runtime.
      {"make-vocab-size-divisible-by",
       SizeArgument([](MegatronSettings*, uint32_t) {})},
      {"use-rotary-position-embeddings",
       SwitchArgument(
           [](MegatronSettings* p) { p->learned_positions = false; })},
      {"window-size", {true, TakeWindow}},
      {"num-experts", CountArgument([](MegatronSettings* p, uint32_t n) {
         p->model().set_num_experts(n);
         p->experts = n > 0;
       })},
      {"moe-router-topk", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->model().set_experts_per_token(n);
       })},
      {"moe-ffn-hidden-size", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->model().set_expert_feed_forward_size(n);
       })},
      {"moe-shared-expert-intermediate-size",
       CountArgument(
           [](MegatronSettings* p, uint32_t n) { p->shared_width = n; })},
      {"moe-expert-capacity-factor",
       NumberArgument([](MegatronSettings* p, double n) {
         p->model().set_capacity_factor(n);
       })},
      {"moe-pad-expert-input-to-capacity",
       SwitchArgument([](MegatronSettings* p) { p->pads_experts = true; })},
      {"moe-router-num-groups",
       CountArgument([](MegatronSettings* p, uint32_t n) {
         p->model().set_num_router_groups(n);
       })},
      {"moe-router-group-topk",
       CountArgument([](MegatronSettings* p, uint32_t n) {
         p->model().set_router_groups_per_token(n);
       })},
      {"moe-layer-freq", {true, TakeExpertBlocks}},
      {"moe-token-dispatcher-type",
       WordArgument(
           {{"alltoall", [](MegatronSettings*) {}},
            {"flex", [](MegatronSettings* p) { p->flex_dispatcher = true; }}})},
      {"moe-enable-deepep",
       SwitchArgument([](MegatronSettings* p) { p->deepep = true; })},
      {"moe-flex-dispatcher-backend",
       WordArgument(
           {{"deepep", [](MegatronSettings* p) { p->deepep = true; }},
            {"hybridep", [](MegatronSettings* p) { p->hybridep = true; }}})},
      {"overlap-moe-expert-parallel-comm",
       SwitchArgument([](MegatronSettings* p) {
         p->communication().set_overlap_expert_exchange(true);
       })},
      {"moe-deepep-num-sms", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->deepep_multiprocessors = n;
       })},
      {"moe-hybridep-num-sms",
       SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->hybridep_multiprocessors = n;
       })},
  };
}

}  // namespace weir::plan
