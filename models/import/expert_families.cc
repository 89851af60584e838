// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "models/import/common_fields.h"

namespace weir::models {
namespace {

void ReadMixtral(Config config) {
  auto& [fields, out] = config;
  const bool absent = !fields.Mentions("num_key_value_heads");
  ReadLlamaLike({.feed_forward_size = 14336,
                 .num_kv_heads = absent ? 8u : 0u,
                 .max_positions = 131072},
                config);
  out->set_sliding_window(fields.Count("sliding_window", 0));
  out->set_num_experts(fields.Count("num_local_experts", 8));
  out->set_experts_per_token(fields.Count("num_experts_per_tok", 2));
}

// Reads which layers of a Qwen model have no experts: those of mlp_only_layers,
// and all but every decoder_sparse_step-th.
void ReadQwenDenseLayers(Config config) {
  auto& [fields, out] = config;
  const uint32_t step = fields.Count("decoder_sparse_step", 1);
  const std::vector<uint32_t> dense = fields.Counts("mlp_only_layers");
  if (step == 0) {
    fields.Add("decoder_sparse_step", "is 0, expected at least 1");
    return;
  }
  if (step == 1 && dense.empty()) return;
  std::vector<bool> experts;
  for (uint32_t i = 0; i < std::min(out->num_layers(), 20000u); ++i) {
    experts.push_back((i + 1) % step == 0 &&
                      std::find(dense.begin(), dense.end(), i) == dense.end());
  }
  SetExpertLayers(config,
                  dense.empty() ? "decoder_sparse_step" : "mlp_only_layers",
                  experts);
}

void ReadQwen2Moe(Config config) {
  auto& [fields, out] = config;
  ReadLlamaLike(
      {.feed_forward_size = 5632, .num_kv_heads = 16, .max_positions = 32768},
      config);
  out->set_attention_bias(fields.Flag("qkv_bias", true));
  out->set_num_experts(fields.Count("num_experts", 60));
  out->set_experts_per_token(fields.Count("num_experts_per_tok", 4));
  const uint32_t expert = fields.Count("moe_intermediate_size", 1408);
  const uint32_t shared = fields.Count("shared_expert_intermediate_size", 5632);
  out->set_expert_feed_forward_size(expert);
  if (expert > 0 && shared % expert == 0) {
    out->set_num_shared_experts(shared / expert);
  } else {
    out->set_num_shared_experts(1);
    out->set_shared_feed_forward_size(shared);
  }
  out->set_shared_expert_gate(true);
  RefuseFlag(fields, "use_sliding_window");
  fields.Mentions("sliding_window");
  ReadQwenDenseLayers(config);
}

// DeepSeek-MoE; version 2 and later use a different attention.
void ReadDeepSeek(Config config) {
  auto& [fields, out] = config;
  ReadLlamaLike({}, config);
  ReadAttentionBiases(config, false);
  out->set_num_experts(fields.Count("n_routed_experts", 0));
  if (out->num_experts() == 0) return;
  out->set_experts_per_token(fields.Count("num_experts_per_tok", 0));
  out->set_expert_feed_forward_size(
      fields.Count("moe_intermediate_size", 1407));
  out->set_num_shared_experts(fields.Count("n_shared_experts", 0));
  out->set_num_dense_blocks(fields.Count("first_k_dense_replace", 0));
  ExpectCount(fields, "moe_layer_freq", 1);
}

void ReadOlmoe(Config config) {
  ReadSizes(config);
  ReadAttentionBiases(config, false);
  config.out->set_query_key_norm(true);
  config.out->set_wide_query_key_norm(true);
  ReadExperts(config, {"num_experts", "num_experts"},
              {"num_experts_per_tok", "num_experts_per_tok"},
              "intermediate_size");
}

void ReadPhiMoe(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config);
  out->set_rms_norm(false);
  ReadAttentionBiases(config, false);
  out->set_head_bias(fields.Flag("lm_head_bias", false));
  out->set_sliding_window(fields.Count("sliding_window", 0));
  ReadExperts(config, {"num_local_experts", "num_local_experts"},
              {"num_experts_per_tok", "num_experts_per_tok"},
              "intermediate_size");
}

// GLM-4.5: grouped heads, unlike GLM-4.7-Flash and GLM-5.
void ReadGlm4Moe(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config);
  out->set_attention_bias(fields.Flag("attention_bias", false));
  out->set_query_key_norm(fields.Flag("use_qk_norm", false));
  ReadExperts(config, {"n_routed_experts", "num_experts"},
              {"num_experts_per_tok", "num_experts_per_tok"},
              "moe_intermediate_size");
  out->set_num_shared_experts(fields.Count("n_shared_experts", 0));
  out->set_num_dense_blocks(fields.Count("first_k_dense_replace", 0));
  ReadMtpModules(config);
}

void ReadMiniMaxM2(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config);
  for (const uint32_t type : fields.Counts("attn_type_list")) {
    if (type == 1) continue;
    fields.Add("attn_type_list", absl::StrCat("has ", type, ", expected 1"));
    break;
  }
  out->set_query_key_norm(fields.Flag("use_qk_norm", false));
  const std::string norm = fields.Text("qk_norm_type", "per_layer");
  out->set_wide_query_key_norm(norm == "per_layer");
  if (norm != "per_layer" && norm != "per_head") {
    fields.Add("qk_norm_type",
               absl::StrCat("is \"", norm.substr(0, 80),
                            "\", expected per_layer or per_head"));
  }
  ReadExperts(config, {"num_local_experts", "num_experts"},
              {"num_experts_per_tok", "num_experts_per_tok"},
              "intermediate_size");
  ExpectCount(fields, "shared_intermediate_size", 0);
  fields.Mentions("mlp_intermediate_size");  // of dense layers; there are none
  const uint32_t modules = fields.Count("num_mtp_modules", 0);
  ExpectCount(fields, "mtp_transformer_layers", 1);
  out->set_num_mtp_modules(fields.Flag("use_mtp", modules > 0) ? modules : 0);
}

}  // namespace

void ReadQwen3Moe(Config config) {
  auto& [fields, out] = config;
  ReadLlamaLike(
      {.feed_forward_size = 6144, .num_kv_heads = 4, .max_positions = 32768},
      config);
  ReadAttentionBiases(config, false);
  ExpectFlag(fields, "qkv_bias", false);
  ExpectFlag(fields, "use_qk_norm", true);
  RefuseFlag(fields, "use_sliding_window");
  fields.Mentions("sliding_window");
  out->set_query_key_norm(true);
  out->set_num_experts(fields.Count("num_experts", 128));
  out->set_experts_per_token(fields.Count("num_experts_per_tok", 8));
  out->set_expert_feed_forward_size(fields.Count("moe_intermediate_size", 768));
  ExpectCount(fields, "shared_expert_intermediate_size", 0);
  ReadQwenDenseLayers(config);
}

std::vector<Family> ExpertFamilies() {
  return {
      {.model_type = "deepseek",
       .architectures = {"DeepseekForCausalLM"},
       .read = ReadDeepSeek,
       .names = {{"num_experts", "n_routed_experts"}}},
      {.model_type = "glm4_moe",
       .architectures = {"Glm4MoeForCausalLM"},
       .read = ReadGlm4Moe,
       .names = {{"num_experts", "n_routed_experts"}}},
      {.model_type = "minimax_m2",
       .architectures = {"MiniMaxM2ForCausalLM"},
       .read = ReadMiniMaxM2,
       .names = {{"num_experts", "num_local_experts"}}},
      {.model_type = "mixtral",
       .architectures = {"MixtralForCausalLM"},
       .read = ReadMixtral,
       .names = {{"num_experts", "num_local_experts"}}},
      {.model_type = "olmoe",
       .architectures = {"OlmoeForCausalLM"},
       .read = ReadOlmoe},
      {.model_type = "phimoe",
       .architectures = {"PhiMoEForCausalLM", "PhimoeForCausalLM"},
       .read = ReadPhiMoe,
       .names = {{"num_experts", "num_local_experts"}}},
      {.model_type = "qwen2_moe",
       .architectures = {"Qwen2MoeForCausalLM"},
       .read = ReadQwen2Moe},
      {.model_type = "qwen3_moe",
       .architectures = {"Qwen3MoeForCausalLM"},
       .read = ReadQwen3Moe},
  };
}

}  // namespace weir::models
