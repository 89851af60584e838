// SPDX-License-Identifier: Apache-2.0
// Settings of the model that depend on several arguments.
#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "plan/frameworks/megatron_combinations.h"
#include "plan/frameworks/megatron_settings.h"

namespace weir::plan {
namespace {

// Returns the default feed-forward width of arguments.py: 4 x the hidden size,
// or with gates two thirds of that, rounded down to a multiple of 64.
uint32_t DefaultWidth(const Transformer& model) {
  const uint64_t width = uint64_t{4} * model.hidden_size();
  return static_cast<uint32_t>(
      model.gated_feed_forward() ? width * 2 / 3 / 64 * 64 : width);
}

void FinishExperts(MegatronSettings* settings, Problems* problems) {
  Transformer& model = settings->model();
  if (model.experts_per_token() == 0) model.set_experts_per_token(2);
  model.set_unpadded_capacity(model.capacity_factor() > 0 &&
                              !settings->pads_experts);
  if (model.num_router_groups() <= 1) model.clear_router_groups_per_token();
  const uint32_t width = model.expert_feed_forward_size() > 0
                             ? model.expert_feed_forward_size()
                             : model.feed_forward_size();
  if (settings->shared_width == 0) {
    model.set_num_shared_experts(0);
  } else if (width > 0 && settings->shared_width % width == 0) {
    model.set_num_shared_experts(settings->shared_width / width);
  } else {
    ReportCombination(
        *settings,
        {"moe-shared-expert-intermediate-size", "moe-ffn-hidden-size",
         "ffn-hidden-size", "hidden-size"},
        absl::StrCat("is ", settings->shared_width, ", expected a multiple of ",
                     settings->NameOf("moe-ffn-hidden-size"), ", which is ",
                     width),
        problems);
  }
  const auto& blocks = settings->expert_blocks;
  const auto first = std::find(blocks.begin(), blocks.end(), true);
  model.set_num_dense_blocks(static_cast<uint32_t>(first - blocks.begin()));
  if (first == blocks.end()) return;
  const auto second = std::find(first + 1, blocks.end(), true);
  model.set_expert_block_interval(
      second == blocks.end() ? 1 : static_cast<uint32_t>(second - first));
  for (size_t b = 0; b < blocks.size(); ++b) {
    const auto position = static_cast<int64_t>(b) - model.num_dense_blocks();
    const bool expected =
        position >= 0 && position % model.expert_block_interval() == 0;
    if (blocks[b] == expected) continue;
    ReportCombination(
        *settings, {"moe-layer-freq"},
        "is irregular, expected blocks with experts at a fixed interval "
        "from the first one on",
        problems);
    return;
  }
}

// NullTokenizer adds a token to --vocab-size; other tokenizers determine the
// size themselves.
uint32_t VocabularyOf(const MegatronSettings& settings) {
  if (settings.padded_vocabulary > 0) return settings.padded_vocabulary;
  if (settings.tokenizer == "NullTokenizer" && settings.vocabulary > 0) {
    return settings.vocabulary + 1;
  }
  if (settings.vocabulary > 0) return settings.vocabulary;
  if (settings.tokenizer == "GPT2BPETokenizer") return 50257;
  if (settings.tokenizer == "Llama2Tokenizer") return 32000;
  return 0;
}

}  // namespace

void FinishModel(MegatronSettings* settings, Problems* problems) {
  Transformer& model = settings->model();
  if (model.feed_forward_size() == 0) {
    model.set_feed_forward_size(DefaultWidth(model));
  }
  model.set_causal(true);
  model.set_tied_embeddings(!settings->untied);
  model.set_attention_bias(!settings->disable_bias_linear ||
                           settings->add_qkv_bias);
  model.set_attention_output_bias(!settings->disable_bias_linear);
  model.set_feed_forward_bias(!settings->disable_bias_linear);
  model.set_vocabulary_size(VocabularyOf(*settings));
  if (settings->grouped_queries) model.set_num_kv_heads(settings->query_groups);
  if (settings->learned_positions) {
    model.set_num_positions(settings->max_positions);
  } else {
    model.set_default_sequence_length(settings->max_positions);
  }
  if (settings->experts) {
    FinishExperts(settings, problems);
  } else {
    // Settings of experts have no effect.
    settings->parallelism().clear_expert_tensor();
    model.clear_num_experts();
    model.clear_experts_per_token();
    model.clear_expert_feed_forward_size();
    model.clear_capacity_factor();
    model.clear_num_router_groups();
    model.clear_router_groups_per_token();
  }
}

}  // namespace weir::plan
