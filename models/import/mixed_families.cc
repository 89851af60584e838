// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts whose layers differ in their attention.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "models/import/common_fields.h"

namespace weir::models {
namespace {

// Attention sinks, biases everywhere, and windows in every second layer.
void ReadGptOss(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config);
  ReadAttentionBiases(config, true);
  out->set_attention_sinks(true);
  ReadExperts(config, {"num_local_experts", "num_experts"},
              {"num_experts_per_tok", "experts_per_token"},
              "intermediate_size");
  fields.Mentions("experts_per_token");
  out->set_router_bias(true);
  out->set_expert_bias(true);
  out->set_activation(CLAMPED_SILU);
  ReadWindows(config, 2);
}

// MiMo-V2: heads of values narrower than those of keys, windows with sinks and
// more key-value heads, and experts in the layers that moe_layer_freq lists.
void ReadMimoV2(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config);
  ReadAttentionBiases(config, false);
  out->set_value_head_size(fields.Count("v_head_dim", 0));
  out->set_attention_sinks(fields.Flag("add_full_attention_sink_bias", false));
  ReadExperts(config, {"n_routed_experts", "num_experts"},
              {"num_experts_per_tok", "num_experts_per_tok"},
              "moe_intermediate_size");
  out->set_num_shared_experts(fields.Count("n_shared_experts", 0));
  const uint32_t window = fields.Count("sliding_window", 0);
  ExpectCount(fields, "sliding_window_size", window);
  ExpectCount(fields, "attention_chunk_size", window);
  NamedKind full = FullKind("0");
  NamedKind sliding = SlidingKind("1", window);
  Transformer& block = *sliding.kind.mutable_block();
  block.set_num_heads(fields.Count("swa_num_attention_heads", 0));
  block.set_num_kv_heads(fields.Count("swa_num_key_value_heads", 0));
  block.set_head_size(fields.Count("swa_head_dim", 0));
  block.set_value_head_size(fields.Count("swa_v_head_dim", 0));
  block.set_attention_sinks(fields.Flag("add_swa_attention_sink_bias", false));
  std::vector<bool> experts;
  for (const uint32_t has : fields.Counts("moe_layer_freq")) {
    experts.push_back(has != 0);
  }
  SetExpertLayers(config, "moe_layer_freq", experts);
  std::vector<std::string> types;
  for (const uint32_t type : fields.Counts("hybrid_layer_pattern")) {
    types.push_back(absl::StrCat(type));
  }
  SetPattern(config, "hybrid_layer_pattern", types, {full, sliding});
}

// Step-3.5 and later.
void ReadStep3(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config);
  ReadAttentionBiases(config, false);
  out->set_query_key_norm(fields.Flag("use_qk_norm", true));
  if (fields.Flag("use_head_wise_attn_gate", false)) {
    out->set_attention_gate(ATTENTION_GATE_PER_HEAD);
  }
  ReadExperts(config, {"num_experts", "moe_num_experts"},
              {"num_experts_per_tok", "moe_top_k"}, "moe_intermediate_size");
  out->set_num_shared_experts(fields.Count("n_shared_experts", 1));
  const uint32_t shared = fields.Count("share_expert_dim", 0);
  if (shared != out->num_shared_experts() * out->expert_feed_forward_size()) {
    out->set_shared_feed_forward_size(shared);
  }
  out->set_num_dense_blocks(fields.Count("first_k_dense_replace", 0));
  ReadMtpModules(config);
  ReadWindows(config, 4);
  if (out->num_mtp_modules() == 0 || out->pattern().empty()) return;
  BlockKind& mtp = *out->add_kinds();
  mtp = KindOf('D', "dense sliding");
  mtp.set_feed_forward(FEED_FORWARD_DENSE);
  mtp.mutable_block()->set_sliding_window(fields.Count("sliding_window", 0));
  out->set_mtp_pattern("D");
}

}  // namespace

// Reads blocks with a dense layer in parallel with the experts, which counts as
// a shared expert, and full attention with wider heads whose values are the
// keys.
void ReadGemma4(Config config) {
  auto& [fields, out] = config;
  ReadGemma3(config);
  ExpectCount(fields, "hidden_size_per_layer_input", 0);
  fields.Mentions("vocab_size_per_layer_input");
  ExpectCount(fields, "num_kv_shared_layers", 0);
  RefuseFlag(fields, "use_double_wide_mlp");
  const uint32_t head = fields.Count("global_head_dim", 0);
  const uint32_t kv_heads = fields.Count("num_global_key_value_heads", 0);
  const bool keys_are_values = fields.Flag("attention_k_eq_v", false);
  for (BlockKind& kind : *out->mutable_kinds()) {
    if (kind.block().sliding_window() > 0) continue;
    kind.mutable_block()->set_head_size(head);
    kind.mutable_block()->set_num_kv_heads(kv_heads);
    kind.mutable_block()->set_keys_are_values(keys_are_values);
  }
  fields.Count("expert_intermediate_size", 0);
  const bool experts = fields.Flag("enable_moe_block", false);
  fields.Mentions("num_experts");
  fields.Mentions("top_k_experts");
  fields.Mentions("moe_intermediate_size");
  if (!experts) return;
  ReadExperts(config, {"num_experts", "num_experts"},
              {"top_k_experts", "top_k_experts"}, "moe_intermediate_size");
  out->set_num_shared_experts(1);
  out->set_shared_feed_forward_size(out->feed_forward_size());
  out->set_extra_norms(5);  // three more around the two branches
}

// Chunked attention, in every fourth layer full attention without positions;
// experts in every interleave_moe_layer_step-th layer.
void ReadLlama4(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config, "intermediate_size_mlp");
  ReadAttentionBiases(config, false);
  ReadExperts(config, {"num_local_experts", "num_experts"},
              {"num_experts_per_tok", "num_experts_per_tok"},
              "intermediate_size");
  out->set_num_shared_experts(1);
  // The norm of queries and keys has no weights.
  fields.Flag("use_qk_norm", true);
  const uint32_t step = fields.Count("interleave_moe_layer_step", 1);
  out->set_num_dense_blocks(std::max(step, 1u) - 1);
  out->set_expert_block_interval(step);
  std::vector<bool> experts(std::min(out->num_layers(), 20000u), false);
  for (const uint32_t layer : fields.Counts("moe_layers")) {
    if (layer < experts.size()) experts[layer] = true;
  }
  for (size_t i = 0; fields.Has("moe_layers") && i < experts.size(); ++i) {
    if (experts[i] == ((i + 1) % std::max(step, 1u) == 0)) continue;
    fields.Add("moe_layers",
               "lists other layers than interleave_moe_layer_step says");
    break;
  }
  const uint32_t chunk = fields.Count("attention_chunk_size", 8192);
  NamedKind chunked{"chunked_attention", KindOf('C', "chunked")};
  chunked.kind.mutable_block()->set_attention_chunk(chunk);
  NamedKind full = FullKind("full_attention");
  full.kind.mutable_block()->set_no_rotation(true);
  const std::vector<uint32_t> rotated = fields.Counts("no_rope_layers");
  const uint32_t interval =
      std::max(fields.Count("no_rope_layer_interval", 4), 1u);
  std::vector<std::string> types;
  for (size_t i = 0; i < experts.size(); ++i) {
    const bool rotates =
        i < rotated.size() ? rotated[i] != 0 : (i + 1) % interval != 0;
    types.push_back(rotates ? "chunked_attention" : "full_attention");
  }
  ReadPattern(config, "layer_types", types, {chunked, full});
}

// Sparse attention over blocks of keys in the layers that
// sparse_attention_freq lists.
void ReadMiniMaxM3(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config, "dense_intermediate_size");
  out->set_query_key_norm(fields.Flag("use_qk_norm", false));
  const std::string norm = fields.Text("qk_norm_type", "per_head");
  out->set_wide_query_key_norm(norm == "per_layer");
  RefuseFlag(fields, "attention_output_gate");
  fields.Mentions("moe_intermediate_size");
  ReadExperts(config, {"num_local_experts", "num_experts"},
              {"num_experts_per_tok", "num_experts_per_tok"},
              "intermediate_size");
  out->set_num_shared_experts(fields.Count("n_shared_experts", 0));
  if (out->num_shared_experts() > 0) {
    const uint32_t shared = fields.Count("shared_intermediate_size", 0);
    if (shared != out->num_shared_experts() * out->expert_feed_forward_size()) {
      out->set_shared_feed_forward_size(shared);
    }
  }
  std::vector<bool> experts;
  for (const uint32_t has : fields.Counts("moe_layer_freq")) {
    experts.push_back(has != 0);
  }
  SetExpertLayers(config, "moe_layer_freq", experts);
  ExpectCount(fields, "first_k_dense_replace", out->num_dense_blocks());
  // The number of modules in training; the other key is that of inference.
  const bool both = fields.Has("num_nextn_predict_layers");
  fields.Mentions("num_mtp_modules");
  ReadMtpModules(config, both ? "num_nextn_predict_layers" : "num_mtp_modules");

  const nlohmann::json* sparse = fields.Object("sparse_attention_config");
  if (sparse == nullptr) return;
  JsonFields index = fields.Inside(*sparse, "sparse_attention_config.");
  NamedKind chosen{"1", KindOf('X', "sparse")};
  SparseIndex& wanted = *chosen.kind.mutable_block()->mutable_sparse_index();
  wanted.set_num_heads(index.Count("sparse_num_index_heads", 0));
  wanted.set_head_size(index.Count("sparse_index_dim", 0));
  wanted.set_num_keys(index.Count("sparse_block_size", 0) *
                      index.Count("sparse_topk_blocks", 0));
  std::vector<std::string> types;
  for (const uint32_t type : index.Counts("sparse_attention_freq")) {
    types.push_back(absl::StrCat(type));
  }
  const bool used = index.Flag("use_sparse_attention", true);
  for (const char* known : {"sparse_disable_index_value", "sparse_init_block",
                            "sparse_local_block", "sparse_score_type"}) {
    index.Mentions(known);
  }
  index.CheckUnknown();
  if (!used) return;
  SetPattern(config, "sparse_attention_config.sparse_attention_freq", types,
             {FullKind("0"), chosen});
}

std::vector<Family> MixedFamilies() {
  return {
      {.model_type = "gemma4_text",
       .architectures = {"Gemma4ForCausalLM"},
       .read = ReadGemma4},
      {.model_type = "gpt_oss",
       .architectures = {"GptOssForCausalLM"},
       .read = ReadGptOss,
       .names = {{"num_experts", "num_local_experts"}}},
      {.model_type = "llama4_text",
       .architectures = {"Llama4ForCausalLM"},
       .read = ReadLlama4,
       .names = {{"num_experts", "num_local_experts"}}},
      {.model_type = "mimo_v2_flash",
       .architectures = {"MiMoV2FlashForCausalLM"},
       .read = ReadMimoV2,
       .names = {{"num_experts", "n_routed_experts"}}},
      {.model_type = "minimax_m3",
       .architectures = {"MiniMaxM3ForCausalLM", "MiniMaxM3SparseForCausalLM"},
       .read = ReadMiniMaxM3,
       .names = {{"num_experts", "num_local_experts"}}},
      {.model_type = "step3p5",
       .architectures = {"Step3p5ForCausalLM"},
       .read = ReadStep3},
      {.model_type = "step3p7",
       .architectures = {"Step3p7FlashForCausalLM"},
       .read = ReadStep3},
  };
}

}  // namespace weir::models
