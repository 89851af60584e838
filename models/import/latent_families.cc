// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "models/import/common_fields.h"

namespace weir::models {
namespace {

// Reads the sizes of multi-head latent attention.
void ReadLatentAttention(Config config) {
  auto& [fields, out] = config;
  LatentAttention& latent = *out->mutable_latent_attention();
  latent.set_query_rank(fields.Count("q_lora_rank", 0));
  latent.set_key_value_rank(RequiredCount(fields, "kv_lora_rank"));
  latent.set_plain_head_size(RequiredCount(fields, "qk_nope_head_dim"));
  latent.set_rotary_head_size(RequiredCount(fields, "qk_rope_head_dim"));
  latent.set_value_head_size(RequiredCount(fields, "v_head_dim"));
  // Files give head_dim different meanings; only the sizes above count.
  fields.Count("head_dim", 0);
  const uint32_t sum = latent.plain_head_size() + latent.rotary_head_size();
  out->set_head_size(sum);
  out->set_num_kv_heads(0);
  const uint32_t whole = fields.Count("qk_head_dim", 0);
  if (whole != 0 && whole != sum) {
    fields.Add("qk_head_dim",
               absl::StrCat("is ", whole,
                            ", expected qk_nope_head_dim + qk_rope_head_dim (",
                            sum, ")"));
  }
  const bool bias = fields.Flag("attention_bias", false);
  out->set_attention_bias(bias);
  out->set_attention_output_bias(bias);
}

// Reads the groups of experts from which a token chooses.
void ReadRouterGroups(Config config) {
  auto& [fields, out] = config;
  const uint32_t groups = fields.Count("n_group", 1);
  const uint32_t chosen = fields.Count("topk_group", groups);
  // "greedy" (DeepSeek-V2-Lite) chooses among all.
  const bool greedy = fields.Text("topk_method", "") == "greedy";
  if (greedy || groups <= 1 || chosen == groups) return;
  out->set_num_router_groups(groups);
  out->set_router_groups_per_token(chosen);
}

void ReadDeepSeekExperts(Config config) {
  auto& [fields, out] = config;
  if (!fields.Has("n_routed_experts")) return;
  ReadExperts(config, {"n_routed_experts", "num_experts"},
              {"num_experts_per_tok", "num_experts_per_token"},
              "moe_intermediate_size");
  out->set_num_shared_experts(fields.Count("n_shared_experts", 0));
  ReadRouterGroups(config);
}

void SetIndex(JsonFields& fields, SparseIndex* index) {
  index->set_num_heads(RequiredCount(fields, "index_n_heads"));
  index->set_head_size(RequiredCount(fields, "index_head_dim"));
  index->set_num_keys(RequiredCount(fields, "index_topk"));
}

// DeepSeek-V3.2 and GLM-5: an index chooses the keys. In GLM-5.2 some layers
// share the choice of an earlier one.
void ReadDeepSeekV32(Config config) {
  auto& [fields, out] = config;
  ReadDeepSeekV3(config);
  const uint32_t every = std::max(fields.Count("index_topk_freq", 1), 1u);
  if (fields.Has("index_topk_pattern")) {
    fields.Add("index_topk_pattern", "is given, expected null");
  }
  NamedKind full{"full", KindOf('I', "indexed")};
  SetIndex(fields, full.kind.mutable_block()->mutable_sparse_index());
  NamedKind shared{"shared", KindOf('i', "index-sharing")};
  *shared.kind.mutable_block() = full.kind.block();
  shared.kind.mutable_block()->mutable_sparse_index()->set_shared(true);
  if (every > 1 && !fields.Has("indexer_types")) {
    fields.Add("indexer_types",
               "is missing, expected a list: index_topk_freq is above 1");
  }
  ReadPattern(config, "indexer_types", {"full"}, {full, shared});
}

// Compressed attention, and hyper-connections between the layers.
void ReadDeepSeekV4(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config, nullptr);
  ExpectFlag(fields, "attention_bias", false);
  ReadDeepSeekExperts(config);
  out->set_feed_forward_size(out->expert_feed_forward_size());
  out->set_num_kv_heads(1);
  ExpectCount(fields, "num_key_value_heads", 1);
  fields.Count("qk_rope_head_dim", 0);
  out->set_residual_streams(fields.Count("hc_mult", 1));
  out->set_attention_sinks(true);
  ReadMtpModules(config);

  Transformer block;
  block.set_sliding_window(RequiredCount(fields, "sliding_window"));
  CompressedAttention& compressed = *block.mutable_compressed_attention();
  compressed.set_query_rank(RequiredCount(fields, "q_lora_rank"));
  compressed.set_output_groups(RequiredCount(fields, "o_groups"));
  compressed.set_output_rank(RequiredCount(fields, "o_lora_rank"));
  NamedKind window{"0", KindOf('W', "window")};
  *window.kind.mutable_block() = block;
  NamedKind heavy{"128", KindOf('H', "heavily compressed")};
  compressed.set_ratio(128);
  *heavy.kind.mutable_block() = block;
  NamedKind sparse{"4", KindOf('C', "compressed sparse")};
  compressed.set_ratio(4);
  compressed.set_overlap(true);
  SetIndex(fields, block.mutable_sparse_index());
  *sparse.kind.mutable_block() = block;

  std::vector<std::string> types;
  for (const uint32_t ratio : fields.Counts("compress_ratios")) {
    types.push_back(absl::StrCat(ratio));
  }
  // The last entries are those of the MTP modules, without compression.
  const size_t expected = size_t{out->num_layers()} + out->num_mtp_modules();
  if (types.size() == expected) types.resize(out->num_layers());
  SetPattern(config, "compress_ratios", types, {window, heavy, sparse});
  if (out->num_mtp_modules() > 0 && !out->pattern().empty()) {
    out->set_mtp_pattern("W");
    if (out->pattern().find('W') == std::string::npos) {
      *out->add_kinds() = window.kind;
    }
  }
}

}  // namespace

void ReadDeepSeekV3(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config);
  ReadLatentAttention(config);
  ReadDeepSeekExperts(config);
  ReadMtpModules(config);
  if (out->num_experts() == 0) return;
  ExpectCount(fields, "moe_layer_freq", 1);
  const std::vector<std::string> types = fields.Texts("mlp_layer_types");
  const uint32_t dense = fields.Count("first_k_dense_replace", 0);
  if (types.empty()) {
    out->set_num_dense_blocks(dense);
    return;
  }
  std::vector<bool> experts;
  experts.reserve(types.size());
  for (const std::string& type : types) experts.push_back(type == "sparse");
  SetExpertLayers(config, "mlp_layer_types", experts);
}

std::vector<Family> LatentFamilies() {
  const std::vector<std::pair<absl::string_view, const char*>> names = {
      {"num_experts", "n_routed_experts"}};
  return {
      {.model_type = "deepseek_ref",
       .architectures = {"DeepseekV4ForCausalLM"},
       .read = ReadDeepSeekV4,
       .names = names},
      {.model_type = "deepseek_v2",
       .architectures = {"DeepseekV2ForCausalLM"},
       .read = ReadDeepSeekV3,
       .names = names},
      {.model_type = "deepseek_v3",
       .architectures = {"DeepseekV3ForCausalLM"},
       .read = ReadDeepSeekV3,
       .names = names},
      {.model_type = "deepseek_v32",
       .architectures = {"DeepseekV32ForCausalLM"},
       .read = ReadDeepSeekV32,
       .names = names},
      {.model_type = "deepseek_v4",
       .architectures = {"DeepseekV4ForCausalLM"},
       .read = ReadDeepSeekV4,
       .names = names},
      {.model_type = "glm4_moe_lite",
       .architectures = {"Glm4MoeLiteForCausalLM"},
       .read = ReadDeepSeekV3,
       .names = names},
      {.model_type = "glm_moe_dsa",
       .architectures = {"GlmMoeDsaForCausalLM"},
       .read = ReadDeepSeekV32,
       .names = names},
      {.model_type = "kimi_k2",
       .architectures = {"DeepseekV3ForCausalLM", "KimiK2ForCausalLM"},
       .read = ReadDeepSeekV3,
       .names = names},
  };
}

}  // namespace weir::models
